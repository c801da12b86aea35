//! Both ends of an iceoryx2 link. With `--wait block`, each block is followed by an event that wakes the receiver, as in
//! the library's example of event-based communication; with `--wait spin`, the receiver polls. In both cases the
//! publisher retries while the subscriber's queue is full.

use std::error::Error;
use std::path::Path;
use std::time::Duration;
use std::{fs, hint, thread};

use iceoryx2::config::Config;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;

use pipemark_link::Link;

#[allow(dead_code)]
mod pipemark_link {
    include!(concat!(env!("PIPEMARK_CONTRACT"), "/pipemark_link.rs"));
}

/// One direction, as one end sees it.
struct Way {
    publisher: Option<Publisher<ipc::Service, [u8], ()>>,
    subscriber: Option<Subscriber<ipc::Service, [u8], ()>>,
    notifier: Option<Notifier<ipc::Service>>,
    listener: Option<Listener<ipc::Service>>,
    copies: bool,
}

impl Way {
    fn open(node: &Node<ipc::Service>, name: &str, sends: bool, link: &Link) -> Result<Way, Box<dyn Error>> {
        let queue: usize = link.option("queue").ok_or("no option 'queue'")?.parse()?;
        let queue = queue.min(((64 << 20) / link.block()).max(2));
        let service = node
            .service_builder(&name.try_into()?)
            .publish_subscribe::<[u8]>()
            .max_publishers(1)
            .max_subscribers(if name == "there" { link.counts().1 as usize } else { 1 })
            .subscriber_max_buffer_size(queue)
            .enable_safe_overflow(false)
            .open_or_create()?;
        let event = node.service_builder(&format!("{name}-event").as_str().try_into()?).event().open_or_create()?;
        let blocks = link.wait() == "block";
        let mut way = Way { publisher: None, subscriber: None, notifier: None, listener: None, copies: false };
        way.copies = link.option("payload").as_deref() == Some("copy");
        if sends {
            let publisher = service.publisher_builder().initial_max_slice_len(link.block());
            let publisher = publisher.backpressure_strategy(BackpressureStrategy::RetryUntilDelivered);
            way.publisher = Some(publisher.create()?);
            way.notifier = if blocks { Some(event.notifier_builder().create()?) } else { None };
        } else {
            way.subscriber = Some(service.subscriber_builder().create()?);
            way.listener = if blocks { Some(event.listener_builder().create()?) } else { None };
        }
        Ok(way)
    }

    /// Sends the next block. Returns false once all have been sent.
    fn send(&self, link: &mut Link) -> Result<bool, Box<dyn Error>> {
        let publisher = self.publisher.as_ref().ok_or("this end doesn't send")?;
        let sample = if self.copies {
            let length = link.block();
            let Some(block) = link.next() else { return Ok(false) };
            publisher.loan_slice_uninit(length)?.write_from_slice(block)
        } else {
            let mut sample = publisher.loan_slice_uninit(link.block())?;
            // SAFETY: the sample has room for a block, which `fill` writes whole.
            if !unsafe { link.fill(sample.payload_mut().as_mut_ptr().cast()) } {
                return Ok(false);
            }
            // SAFETY: the whole block was written.
            unsafe { sample.assume_init() }
        };
        sample.send()?;
        if let Some(notifier) = &self.notifier {
            notifier.notify()?;
        }
        Ok(true)
    }

    /// Waits for the next block and checks it. False at the end of the stream.
    fn receive(&mut self, link: &mut Link) -> Result<bool, Box<dyn Error>> {
        let subscriber = self.subscriber.as_ref().ok_or("this end doesn't receive")?;
        loop {
            if let Some(sample) = subscriber.receive()? {
                return Ok(link.received(sample.payload()));
            }
            match &mut self.listener {
                Some(listener) => listener.blocking_wait(|_| {}).map(drop)?,
                None => hint::spin_loop(),
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut link = Link::start(None);
    let (sender, trips) = (link.is_sender(), link.round_trips());
    let mut config = Config::default();
    // Everything that the library names is in the run's directory or has its name.
    config.global.prefix = FileName::new(format!("{}_", link.name()).as_bytes())?;
    config.global.set_root_path(&iceoryx2::prelude::Path::new(link.directory().as_bytes())?);
    let node = NodeBuilder::new().config(&config).create::<ipc::Service>()?;
    let mut there = Way::open(&node, "there", sender, &link)?;
    let mut back = if trips { Some(Way::open(&node, "back", !sender, &link)?) } else { None };
    link.bound();
    // A subscriber connects to a publisher when it first looks for samples. Until then, what doesn't fit into its queue
    // is dropped, even with RetryUntilDelivered. So each subscriber looks once both publishers exist.
    let published = Path::new(&link.directory()).join("published");
    if sender {
        fs::write(&published, "")?;
    }
    while !published.exists() {
        thread::sleep(Duration::from_millis(1));
    }
    for way in [Some(&there), back.as_ref()].into_iter().flatten() {
        way.subscriber.as_ref().map(Subscriber::has_samples).transpose()?;
    }
    link.ready();
    if sender {
        while there.send(&mut link)? {
            if let Some(back) = back.as_mut().filter(|_| !link.is_last()) {
                back.receive(&mut link)?;
            }
        }
    } else {
        while there.receive(&mut link)? {
            if let Some(back) = &back {
                back.send(&mut link)?;
            }
        }
    }
    link.done();
    Ok(())
}
