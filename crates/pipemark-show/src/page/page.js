// Draws the charts of a report, and handles the controls around them. Text from documents is only ever set as text.
"use strict";
(() => {
  const root = document.documentElement;
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const boxes = [...document.querySelectorAll(".chart")];
  const states = new Map(boxes.map((box) => [box, { hidden: new Set(), view: null, width: 0 }]));
  const EDITOR = "https://vega.github.io/editor/";

  // The style of charts. Its colours come from the style sheet, the only place that defines
  // colours.
  function chartStyle(width, light) {
    if (light) root.dataset.theme = "light";
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    const pick = (...names) => names.map(colour);
    const ink = colour("ink"), muted = colour("muted");
    const config = {
      aria: false,
      background: light ? colour("paper") : "transparent",
      font: "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Cantarell, sans-serif",
      padding: { left: 4, right: 12, top: 4, bottom: 4 },
      view: { stroke: null },
      axis: {
        labelColor: muted, titleColor: muted, titleFontWeight: 500, titleFontSize: 12, labelFontSize: 12,
        gridColor: colour("grid"), domainColor: colour("line"), tickColor: colour("line"), titlePadding: 8,
      },
      axisX: { titleAnchor: width < 460 ? "end" : "middle" },
      axisY: { labelLimit: Math.max(90, width * 0.38), labelFontSize: width < 460 ? 11 : 12 },
      legend: { labelColor: ink, labelFontSize: 12 },
      range: {
        category: pick("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"),
        heatmap: pick("heat1", "heat2", "heat3", "heat4", "heat5"),
        diverging: pick("less1", "less2", "even", "more1", "more2"),
      },
      style: {
        published: { stroke: muted, color: muted, fill: null, strokeWidth: 1.6 },
        interval: { stroke: ink, color: ink, strokeWidth: 1.4 },
        figure: { fill: ink, color: ink, fontSize: 11.5 },
        limit: { stroke: muted, color: muted, strokeDash: [4, 3] },
        "limit-name": { fill: muted, color: muted, fontSize: 11 },
        cell: { stroke: colour("paper"), strokeWidth: 2 },
        unranked: { fill: colour("sheet"), color: colour("sheet"), stroke: colour("paper"), strokeWidth: 2 },
        "cell-strong": { fill: colour("on-strong"), color: colour("on-strong"), fontSize: width < 460 ? 9.5 : 11.5 },
        "cell-weak": { fill: colour("on-weak"), color: colour("on-weak"), fontSize: width < 460 ? 9.5 : 11.5 },
        "cell-unranked": { fill: muted, color: muted, fontSize: width < 460 ? 9.5 : 11.5 },
      },
    };
    if (light) delete root.dataset.theme;
    return config;
  }

  // A row is as high as the longest name needs.
  function height({ height, layer }, letters) {
    if (!height.step) return height;
    const lines = Math.max(...layer[0].encoding.y.scale.domain.map((name) => Math.ceil((name.length + 4) / letters)));
    return { ...height, step: Math.max(height.step, 13 * lines + 5) };
  }

  function compiled(spec, width, config) {
    // Names beside an axis have at most three eighths of the width. Longer ones are wrapped.
    const letters = Math.round(Math.max(90, width * 0.38) / 6.5);
    const params = spec.params.map((param) => (param.name === "letters" ? { ...param, value: letters } : param));
    const sized = { ...spec, params, width, height: height(spec, letters), autosize: { type: "fit-x", contains: "padding" } };
    return vegaLite.compile(sized, { config, logger: vega.logger(vega.Error) }).spec;
  }

  // Expressions are interpreted, so that the page can forbid the evaluation of text.
  function view(spec, options) {
    return new vega.View(vega.parse(spec, null, { ast: true }), {
      expr: vega.expressionInterpreter, logLevel: vega.Error, ...options,
    });
  }

  function draw(box, light = false) {
    const state = states.get(box);
    state.width = box.clientWidth;
    if (state.width < 40) return;
    const spec = compiled(specs[box.dataset.chart], state.width, chartStyle(state.width, light));
    // The page's legend consists of buttons, so that it works with a keyboard.
    delete spec.legends;
    state.view?.finalize();
    state.view = view(spec, { renderer: "svg", container: box, hover: true, tooltip: tip });
    state.view.signal("hidden", [...state.hidden]).run();
    // Screen readers get the label of the box and the table; the marks would only be noise.
    box.querySelector("svg").setAttribute("aria-hidden", "true");
    box.classList.add("drawn");
  }

  const tipBox = document.getElementById("tip");
  function tip(handler, event, item, value) {
    if (value === null || value === undefined || value === "") {
      tipBox.hidden = true;
      return;
    }
    const lines = [["name", value.trial], ["figure", value.figure], ["interval", value["95 %"]]];
    tipBox.replaceChildren(...lines.filter(([, text]) => text).map(([kind, text]) => {
      const line = document.createElement("p");
      line.className = kind;
      line.textContent = text;
      return line;
    }));
    tipBox.hidden = false;
    const { width, height } = tipBox.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY + 16 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 16;
    tipBox.style.left = Math.max(8, left) + "px";
    tipBox.style.top = Math.max(8, top) + "px";
  }
  addEventListener("scroll", () => (tipBox.hidden = true), { passive: true });
  addEventListener("keydown", (event) => event.key === "Escape" && (tipBox.hidden = true));

  // A chart is drawn only when it is scrolled near, because a page may have many.
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        near.unobserve(target);
        draw(target);
      }
    }
  }, { rootMargin: "600px" });
  boxes.forEach((box) => near.observe(box));

  const redraw = () => boxes.filter((box) => states.get(box).view).forEach((box) => draw(box));
  let pending;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => boxes.forEach((box) => {
      const { view, width } = states.get(box);
      if (view && width !== box.clientWidth) draw(box);
    }), 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // A printed page shows everything, in dark ink on white.
  const closed = [];
  addEventListener("beforeprint", () => {
    boxes.forEach((box) => draw(box, true));
    document.querySelectorAll("details:not([open])").forEach((details) => closed.push(details) && (details.open = true));
  });
  addEventListener("afterprint", () => {
    redraw();
    closed.splice(0).forEach((details) => (details.open = false));
  });

  function save(address, name) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  }

  async function saveChart(box, kind) {
    const spec = specs[box.dataset.chart];
    const width = Math.max(box.clientWidth, 640);
    const config = chartStyle(width, true);
    if (kind === "editor") return openEditor(spec, config);
    const picture = view(compiled(spec, width, config), { renderer: "none" });
    await picture.signal("hidden", [...states.get(box).hidden]).runAsync();
    save(await picture.toImageURL(kind, kind === "png" ? 2 : 1), `pipemark-chart-${Number(box.dataset.chart) + 1}.${kind}`);
    picture.finalize();
  }

  // The chart is sent to the editor repeatedly until it confirms, for at most ten seconds.
  function openEditor(spec, config) {
    const editor = open(EDITOR);
    if (!editor) return;
    const message = { mode: "vega-lite", spec: JSON.stringify(spec, null, 2), config: JSON.stringify(config), renderer: "svg" };
    let tries = 40;
    addEventListener("message", (event) => event.source === editor && (tries = 0));
    const timer = setInterval(() => {
      if (tries-- <= 0) clearInterval(timer);
      else editor.postMessage(message, new URL(EDITOR).origin);
    }, 250);
  }

  async function saveRaw(button) {
    const packed = atob(document.getElementById(button.dataset.raw).textContent);
    const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const address = URL.createObjectURL(new Blob([await new Response(stream).arrayBuffer()], { type: "application/json" }));
    save(address, button.dataset.file);
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  for (const legend of document.querySelectorAll(".legend")) {
    const box = legend.closest(".panel").querySelector(".chart");
    const state = states.get(box);
    const buttons = [...legend.children];
    const coloured = specs[box.dataset.chart].usermeta.names;
    const update = () => {
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(!state.hidden.has(button.textContent))));
      state.view?.signal("hidden", [...state.hidden]).runAsync();
    };
    buttons.forEach((button) => {
      const name = button.textContent;
      const place = coloured.indexOf(name);
      if (place >= 0) button.classList.add("k" + ((place % 8) + 1), "line" + Math.floor(place / 8));
      button.title = "Show or hide; with Shift, show only this";
      button.addEventListener("click", (event) => {
        if (event.shiftKey) state.hidden = new Set(buttons.map((other) => other.textContent).filter((other) => other !== name));
        else if (!state.hidden.delete(name)) state.hidden.add(name);
        update();
      });
    });
  }

  addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.save) saveChart(button.closest(".panel").querySelector(".chart"), button.dataset.save);
    if (button?.dataset.raw) saveRaw(button);
  });
})();
