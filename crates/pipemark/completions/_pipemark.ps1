
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'pipemark' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'pipemark'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'pipemark' {
            [CompletionResult]::new('--completions', '--completions', [CompletionResultType]::ParameterName, 'Print completions for a shell')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run suites of predefined experiments')
            [CompletionResult]::new('bw', 'bw', [CompletionResultType]::ParameterValue, 'Measure pipe throughput, for one setting or a matrix of settings')
            [CompletionResult]::new('latency', 'latency', [CompletionResultType]::ParameterValue, 'Measure round-trip times')
            [CompletionResult]::new('compare', 'compare', [CompletionResultType]::ParameterValue, 'Compare two measurements: better, worse, same or inconclusive')
            [CompletionResult]::new('ab', 'ab', [CompletionResultType]::ParameterValue, 'Time commands and compare them: which is faster, and by how much?')
            [CompletionResult]::new('history', 'history', [CompletionResultType]::ParameterValue, 'Show earlier measurements and their trends')
            [CompletionResult]::new('lines', 'lines', [CompletionResultType]::ParameterValue, 'Transform lines: count spaces, number lines, cut fields')
            [CompletionResult]::new('gen', 'gen', [CompletionResultType]::ParameterValue, 'Generate lines or bytes, as the source of a pipeline')
            [CompletionResult]::new('sink', 'sink', [CompletionResultType]::ParameterValue, 'Measure the rate of standard input and check its bytes, as the sink of a pipeline')
            [CompletionResult]::new('chain', 'chain', [CompletionResultType]::ParameterValue, 'Measure the cost of one more process in a pipeline')
            [CompletionResult]::new('why', 'why', [CompletionResultType]::ParameterValue, 'Find out what limits a pipeline')
            [CompletionResult]::new('watch', 'watch', [CompletionResultType]::ParameterValue, 'Show a running pipeline on a live screen')
            [CompletionResult]::new('tune', 'tune', [CompletionResultType]::ParameterValue, 'Try changes of a pipeline, and print the fastest one; try larger pipes in a running pipeline')
            [CompletionResult]::new('report', 'report', [CompletionResultType]::ParameterValue, 'Write results as an HTML page, or draw them in the terminal')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List suites, links, methods and this machine''s properties')
            [CompletionResult]::new('relay', 'relay', [CompletionResultType]::ParameterValue, 'Pass standard input to standard output like cat, without copying bytes where possible')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Explain a verb or a topic, such as method or units')
            break
        }
        'pipemark;run' {
            [CompletionResult]::new('--scale', '--scale', [CompletionResultType]::ParameterName, 'Multiply the suites'' bytes and times per run by F')
            [CompletionResult]::new('--against', '--against', [CompletionResultType]::ParameterName, 'Measure your own program too, as a row of the suite''s main table; may be repeated')
            [CompletionResult]::new('--figure', '--figure', [CompletionResultType]::ParameterName, 'Read the result from the output of --against: rate,MiB/s=REGEX or time,s=REGEX')
            [CompletionResult]::new('--runs', '--runs', [CompletionResultType]::ParameterName, 'Run each trial exactly N times')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Stop adding runs after TIME, such as 30s or 2min')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Abort a run that takes longer than TIME [default: the expected time plus 60s]')
            [CompletionResult]::new('--sessions', '--sessions', [CompletionResultType]::ParameterName, 'Measure in N sessions, each started afresh, for ''pipemark compare''')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed for the order of runs, the content and the delays [default: 1]')
            [CompletionResult]::new('--entrants', '--entrants', [CompletionResultType]::ParameterName, 'Directory with the programs [default: ./entrants]')
            [CompletionResult]::new('--only', '--only', [CompletionResultType]::ParameterName, 'Use only these languages, by directory name; ''run'' also measures the baseline of the ratios')
            [CompletionResult]::new('--links', '--links', [CompletionResultType]::ParameterName, 'Directory with links by other programs [default: ./links]')
            [CompletionResult]::new('--verify', '--verify', [CompletionResultType]::ParameterName, 'How programs in other languages check the bytes: full (a checksum that detects lost and moved blocks) or xor (as in the published benchmark) [default: the suite''s]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write the results as CSV')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the tables as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--openmetrics', '--openmetrics', [CompletionResultType]::ParameterName, 'Write estimates as OpenMetrics text, for example for node_exporter''s textfile collector')
            [CompletionResult]::new('--benchmark-json', '--benchmark-json', [CompletionResultType]::ParameterName, 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial')
            [CompletionResult]::new('--json-lines', '--json-lines', [CompletionResultType]::ParameterName, 'Write a line of JSON as each run and each trial ends')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Label for this measurement, such as before-upgrade')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'List the trials and estimate the time; measure nothing')
            [CompletionResult]::new('--build', '--build', [CompletionResultType]::ParameterName, 'Rebuild the programs in other languages; measure nothing')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print all tables, figures and findings instead of one screen')
            [CompletionResult]::new('--no-save', '--no-save', [CompletionResultType]::ParameterName, 'Do not save this measurement in the history')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;bw' {
            [CompletionResult]::new('--link', '--link', [CompletionResultType]::ParameterName, 'Mechanism between writer and reader [default: pipe]')
            [CompletionResult]::new('--place', '--place', [CompletionResultType]::ParameterName, 'CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: cross]')
            [CompletionResult]::new('--verify', '--verify', [CompletionResultType]::ParameterName, 'How to check the bytes [default: count]')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How the writer sends [default: write]')
            [CompletionResult]::new('--recv', '--recv', [CompletionResultType]::ParameterName, 'How the reader receives [default: read]')
            [CompletionResult]::new('--capacity', '--capacity', [CompletionResultType]::ParameterName, 'Pipe capacity: default, quota, or a size [default: default]')
            [CompletionResult]::new('--total', '--total', [CompletionResultType]::ParameterName, 'Bytes per run and pair [default: limited by --time]')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Time per run, such as 200ms [default: 250ms]')
            [CompletionResult]::new('--block', '--block', [CompletionResultType]::ParameterName, 'Bytes per call of the writer [default: 64 KiB]')
            [CompletionResult]::new('--mode', '--mode', [CompletionResultType]::ParameterName, 'throughput: a one-way stream; latency: round trips of one block [default: throughput]')
            [CompletionResult]::new('--pairs', '--pairs', [CompletionResultType]::ParameterName, 'Number of writer and reader pairs that run at once [default: 1]')
            [CompletionResult]::new('--writers', '--writers', [CompletionResultType]::ParameterName, 'Number of writers on one pipe; split records are counted [default: 1]')
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'How writer and reader wait [default: block]')
            [CompletionResult]::new('--pages', '--pages', [CompletionResultType]::ParameterName, 'Page size of the buffers [default: base]')
            [CompletionResult]::new('--align', '--align', [CompletionResultType]::ParameterName, 'Offset of the buffers from a page boundary, in bytes [default: 0]')
            [CompletionResult]::new('--buffer', '--buffer', [CompletionResultType]::ParameterName, 'Socket send and receive buffers: default, or a size [default: default]')
            [CompletionResult]::new('--rseq', '--rseq', [CompletionResultType]::ParameterName, 'Restartable sequences (rseq) of writer and reader: system (the system''s default) or off [default: system]')
            [CompletionResult]::new('--rate', '--rate', [CompletionResultType]::ParameterName, 'Messages per second, each timed from when it is due; closed: send each message after the reply to the previous [default: closed]')
            [CompletionResult]::new('--gap', '--gap', [CompletionResultType]::ParameterName, 'Pause between messages, such as 0,100us,1ms [default: 0]')
            [CompletionResult]::new('--write-delay', '--write-delay', [CompletionResultType]::ParameterName, 'Busy time of the writer before each call, in microseconds by default: random, 0.5 to 1.5 times the value [default: 0]')
            [CompletionResult]::new('--read-delay', '--read-delay', [CompletionResultType]::ParameterName, 'Busy time of the reader after each call, in microseconds by default: random, 0.5 to 1.5 times the value [default: 0]')
            [CompletionResult]::new('--blocks', '--blocks', [CompletionResultType]::ParameterName, 'Blocks per run and pair, in place of --total [default: limited by --time]')
            [CompletionResult]::new('--read-block', '--read-block', [CompletionResultType]::ParameterName, 'Bytes per call of the reader [default: same as --block]')
            [CompletionResult]::new('--links', '--links', [CompletionResultType]::ParameterName, 'Directory with links by other programs [default: ./links]')
            [CompletionResult]::new('--runs', '--runs', [CompletionResultType]::ParameterName, 'Run each trial exactly N times')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Stop adding runs after TIME, such as 30s or 2min')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Abort a run that takes longer than TIME [default: the expected time plus 60s]')
            [CompletionResult]::new('--sessions', '--sessions', [CompletionResultType]::ParameterName, 'Measure in N sessions, each started afresh, for ''pipemark compare''')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed for the order of runs, the content and the delays [default: 1]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write the results as CSV')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the tables as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--openmetrics', '--openmetrics', [CompletionResultType]::ParameterName, 'Write estimates as OpenMetrics text, for example for node_exporter''s textfile collector')
            [CompletionResult]::new('--benchmark-json', '--benchmark-json', [CompletionResultType]::ParameterName, 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial')
            [CompletionResult]::new('--json-lines', '--json-lines', [CompletionResultType]::ParameterName, 'Write a line of JSON as each run and each trial ends')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Label for this measurement, such as before-upgrade')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--baseline', '--baseline', [CompletionResultType]::ParameterName, 'For each trial, also measure a baseline with these values, and show the ratio to it')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Print a line every TIME during a run [default: sample every 10ms, print nothing]')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print all tables, figures and findings instead of one screen')
            [CompletionResult]::new('--no-save', '--no-save', [CompletionResultType]::ParameterName, 'Do not save this measurement in the history')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;latency' {
            [CompletionResult]::new('--link', '--link', [CompletionResultType]::ParameterName, 'Mechanism between writer and reader [default: pipe]')
            [CompletionResult]::new('--place', '--place', [CompletionResultType]::ParameterName, 'CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: cross]')
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'How writer and reader wait [default: block]')
            [CompletionResult]::new('--rate', '--rate', [CompletionResultType]::ParameterName, 'Messages per second, each timed from when it is due; closed: send each message after the reply to the previous [default: closed]')
            [CompletionResult]::new('--gap', '--gap', [CompletionResultType]::ParameterName, 'Pause between messages, such as 0,100us,1ms [default: 0]')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Time per run, such as 200ms [default: 250ms]')
            [CompletionResult]::new('--block', '--block', [CompletionResultType]::ParameterName, 'Bytes per call of the writer [default: 64]')
            [CompletionResult]::new('--pairs', '--pairs', [CompletionResultType]::ParameterName, 'Number of writer and reader pairs that run at once [default: 1]')
            [CompletionResult]::new('--verify', '--verify', [CompletionResultType]::ParameterName, 'How to check the bytes [default: count]')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How the writer sends [default: write]')
            [CompletionResult]::new('--recv', '--recv', [CompletionResultType]::ParameterName, 'How the reader receives [default: read]')
            [CompletionResult]::new('--pages', '--pages', [CompletionResultType]::ParameterName, 'Page size of the buffers [default: base]')
            [CompletionResult]::new('--align', '--align', [CompletionResultType]::ParameterName, 'Offset of the buffers from a page boundary, in bytes [default: 0]')
            [CompletionResult]::new('--capacity', '--capacity', [CompletionResultType]::ParameterName, 'Pipe capacity: default, quota, or a size [default: default]')
            [CompletionResult]::new('--buffer', '--buffer', [CompletionResultType]::ParameterName, 'Socket send and receive buffers: default, or a size [default: default]')
            [CompletionResult]::new('--rseq', '--rseq', [CompletionResultType]::ParameterName, 'Restartable sequences (rseq) of writer and reader: system (the system''s default) or off [default: system]')
            [CompletionResult]::new('--total', '--total', [CompletionResultType]::ParameterName, 'Bytes per run and pair [default: limited by --time]')
            [CompletionResult]::new('--links', '--links', [CompletionResultType]::ParameterName, 'Directory with links by other programs [default: ./links]')
            [CompletionResult]::new('--runs', '--runs', [CompletionResultType]::ParameterName, 'Run each trial exactly N times')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Stop adding runs after TIME, such as 30s or 2min')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Abort a run that takes longer than TIME [default: the expected time plus 60s]')
            [CompletionResult]::new('--sessions', '--sessions', [CompletionResultType]::ParameterName, 'Measure in N sessions, each started afresh, for ''pipemark compare''')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed for the order of runs, the content and the delays [default: 1]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write the results as CSV')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the tables as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--openmetrics', '--openmetrics', [CompletionResultType]::ParameterName, 'Write estimates as OpenMetrics text, for example for node_exporter''s textfile collector')
            [CompletionResult]::new('--benchmark-json', '--benchmark-json', [CompletionResultType]::ParameterName, 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial')
            [CompletionResult]::new('--json-lines', '--json-lines', [CompletionResultType]::ParameterName, 'Write a line of JSON as each run and each trial ends')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Label for this measurement, such as before-upgrade')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--baseline', '--baseline', [CompletionResultType]::ParameterName, 'For each trial, also measure a baseline with these values, and show the ratio to it')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Print a line every TIME during a run [default: sample every 10ms, print nothing]')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print all tables, figures and findings instead of one screen')
            [CompletionResult]::new('--no-save', '--no-save', [CompletionResultType]::ParameterName, 'Do not save this measurement in the history')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;compare' {
            [CompletionResult]::new('--base', '--base', [CompletionResultType]::ParameterName, 'Take trials with these parameters as the reference')
            [CompletionResult]::new('--new', '--new', [CompletionResultType]::ParameterName, 'Compare the reference with the trials that differ only in these parameters')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'Smallest change that counts, such as 5%')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'Exit with the verdict''s code if a trial has this verdict; see ''pipemark help exit-codes''')
            [CompletionResult]::new('--with', '--with', [CompletionResultType]::ParameterName, 'Parameters of the trial [default: those of ''pipemark bw'']')
            [CompletionResult]::new('--sessions', '--sessions', [CompletionResultType]::ParameterName, 'Measure in N sessions; 8 or more are recommended')
            [CompletionResult]::new('--rounds', '--rounds', [CompletionResultType]::ParameterName, 'Measure each side N times per session')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write the results as CSV')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the tables as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--aa', '--aa', [CompletionResultType]::ParameterName, 'Compare one trial with itself on this machine; print the smallest detectable change')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print all rows')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;ab' {
            [CompletionResult]::new('-P', '-P ', [CompletionResultType]::ParameterName, 'Compare values: replace {NAME} in commands, hooks and names: threads=1,2,4 or size=1..10:3')
            [CompletionResult]::new('--parameter', '--parameter', [CompletionResultType]::ParameterName, 'Compare values: replace {NAME} in commands, hooks and names: threads=1,2,4 or size=1..10:3')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Name a command; repeat for each command')
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Name a command; repeat for each command')
            [CompletionResult]::new('--reference', '--reference', [CompletionResultType]::ParameterName, 'Compare with this command, by number or name [default: 1]')
            [CompletionResult]::new('--capacity', '--capacity', [CompletionResultType]::ParameterName, 'Capacity of the pipes between stages: default, or a size; several values compare a single command at each capacity')
            [CompletionResult]::new('--setup', '--setup', [CompletionResultType]::ParameterName, 'Run COMMAND once, before the first run; give one for all commands, or one for each')
            [CompletionResult]::new('--prepare', '--prepare', [CompletionResultType]::ParameterName, 'Run COMMAND before each run, untimed')
            [CompletionResult]::new('--conclude', '--conclude', [CompletionResultType]::ParameterName, 'Run COMMAND after each run, even a failed one, untimed')
            [CompletionResult]::new('--cleanup', '--cleanup', [CompletionResultType]::ParameterName, 'Run COMMAND once, at the end, even after a failure or Ctrl-C')
            [CompletionResult]::new('-S', '-S ', [CompletionResultType]::ParameterName, 'Shell that runs commands and hooks')
            [CompletionResult]::new('--shell', '--shell', [CompletionResultType]::ParameterName, 'Shell that runs commands and hooks')
            [CompletionResult]::new('--input', '--input', [CompletionResultType]::ParameterName, 'Redirect FILE to the standard input of each command [default: /dev/null]')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Set an environment variable; may be repeated')
            [CompletionResult]::new('--cpus', '--cpus', [CompletionResultType]::ParameterName, 'Run commands only on these CPUs, such as 0,2-3')
            [CompletionResult]::new('--cold', '--cold', [CompletionResultType]::ParameterName, 'Evict FILE from the page cache before each run, so that it is read from storage; may be repeated')
            [CompletionResult]::new('--concurrent', '--concurrent', [CompletionResultType]::ParameterName, 'Run N copies of each command at once; outputs are compared by length only')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Abort a run that takes longer than TIME')
            [CompletionResult]::new('-r', '-r', [CompletionResultType]::ParameterName, 'Run each command N times in each session')
            [CompletionResult]::new('--runs', '--runs', [CompletionResultType]::ParameterName, 'Run each command N times in each session')
            [CompletionResult]::new('--sessions', '--sessions', [CompletionResultType]::ParameterName, 'Measure in N sessions, each started afresh, and compare by session; verdicts then need at least five sessions')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Stop adding rounds after TIME [default: 1min, or 2min with several sessions]')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'Warm up with N rounds in each session; with 0, outputs are compared by length only')
            [CompletionResult]::new('--warmup', '--warmup', [CompletionResultType]::ParameterName, 'Warm up with N rounds in each session; with 0, outputs are compared by length only')
            [CompletionResult]::new('--figure', '--figure', [CompletionResultType]::ParameterName, 'Read a figure from the command''s output: the number that REGEX matches, or that its group ( ) matches if it has one')
            [CompletionResult]::new('--by', '--by', [CompletionResultType]::ParameterName, 'Rank and judge commands by this figure')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'Smallest change that counts, such as 5%')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'Exit with the verdict''s code if a command has this verdict; see ''pipemark help exit-codes''')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write the results as CSV')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the tables as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--json-lines', '--json-lines', [CompletionResultType]::ParameterName, 'Write a line of JSON as each run ends')
            [CompletionResult]::new('--hyperfine-json', '--hyperfine-json', [CompletionResultType]::ParameterName, 'Write JSON in the format of hyperfine''s --export-json')
            [CompletionResult]::new('--benchmark-json', '--benchmark-json', [CompletionResultType]::ParameterName, 'Write JSON for github-action-benchmark (customSmallerIsBetter, or customBiggerIsBetter if the figure of --by is better when higher), one figure per command')
            [CompletionResult]::new('--bencher-json', '--bencher-json', [CompletionResultType]::ParameterName, 'Write JSON for Bencher (Bencher Metric Format), all figures')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Allow more than 256 commands')
            [CompletionResult]::new('-i', '-i', [CompletionResultType]::ParameterName, 'Ignore nonzero exit codes')
            [CompletionResult]::new('--ignore-failure', '--ignore-failure', [CompletionResultType]::ParameterName, 'Ignore nonzero exit codes')
            [CompletionResult]::new('--ignore-output', '--ignore-output', [CompletionResultType]::ParameterName, 'Compare commands even if their outputs differ')
            [CompletionResult]::new('--pipeline-memory', '--pipeline-memory', [CompletionResultType]::ParameterName, 'Sample the total memory of a command''s processes every 5 ms, for the figure pipeline-memory')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print every figure, even for more than two commands')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;history' {
            [CompletionResult]::new('--suite', '--suite', [CompletionResultType]::ParameterName, 'Only measurements of this suite or verb, such as bw')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only measurements with this label; * matches any characters, ? one')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Only measurements of the machine NAME; * and ? as in --label')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'Only measurements since a date, a time or an age: 2026-01-31, ''2026-01-31 12:00'', 7d')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'List the newest N; 0 lists all')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List measurements, newest first (the default)')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print one measurement again [default: the newest]')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Write one measurement as JSON, as --json does [default: the newest]')
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Import JSON from pipemark or hyperfine, CSV, or time(1) logs')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete measurements')
            [CompletionResult]::new('trend', 'trend', [CompletionResultType]::ParameterValue, 'Show one trial over time, with its changes')
            break
        }
        'pipemark;history;list' {
            [CompletionResult]::new('--suite', '--suite', [CompletionResultType]::ParameterName, 'Only measurements of this suite or verb, such as bw')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only measurements with this label; * matches any characters, ? one')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Only measurements of the machine NAME; * and ? as in --label')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'Only measurements since a date, a time or an age: 2026-01-31, ''2026-01-31 12:00'', 7d')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'List the newest N; 0 lists all')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;history;show' {
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print all tables, figures and findings instead of one screen')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;history;export' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write to FILE, atomically')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write to FILE, atomically')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pipemark;history;import' {
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'Parameters of the measurements, such as block=64k or total=1g; KEY alone reads the value from the file')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Label the measurements')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;history;delete' {
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do not ask for confirmation; required if standard input is not a terminal')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do not ask for confirmation; required if standard input is not a terminal')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pipemark;history;trend' {
            [CompletionResult]::new('--suite', '--suite', [CompletionResultType]::ParameterName, 'Only measurements of this suite or verb, such as bw')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only measurements with this label; * matches any characters, ? one')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Only measurements of the machine NAME; * and ? as in --label')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'Only measurements since a date, a time or an age: 2026-01-31, ''2026-01-31 12:00'', 7d')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Use only the newest N runs; 0 uses all runs')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'Smallest change that counts, such as 5%')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'Exit with code 10 (worse) or 13 (better) if the latest change of at least one trial has this verdict')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;lines' {
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('spaces', 'spaces', [CompletionResultType]::ParameterValue, 'Prefix each line with its number of spaces, as [spaces: N] or [spaces: >6] (the default transform)')
            [CompletionResult]::new('number', 'number', [CompletionResultType]::ParameterValue, 'Prefix each line with its number and a tab')
            [CompletionResult]::new('length', 'length', [CompletionResultType]::ParameterValue, 'Replace each line with its length in bytes')
            [CompletionResult]::new('upper', 'upper', [CompletionResultType]::ParameterValue, 'Convert the letters a-z to upper case; leave other bytes unchanged')
            [CompletionResult]::new('identity', 'identity', [CompletionResultType]::ParameterValue, 'Copy each line unchanged')
            [CompletionResult]::new('field', 'field', [CompletionResultType]::ParameterValue, 'Replace each line with its N-th field, counted from 1; the result is empty if there is no such field')
            break
        }
        'pipemark;lines;spaces' {
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;lines;number' {
            [CompletionResult]::new('--start', '--start', [CompletionResultType]::ParameterName, 'Number of the first line')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;lines;length' {
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;lines;upper' {
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;lines;identity' {
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;lines;field' {
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'Byte between fields [default: tab]')
            [CompletionResult]::new('--delimiter', '--delimiter', [CompletionResultType]::ParameterName, 'Byte between fields [default: tab]')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Use at most N threads; auto: up to four for a file, one for anything else')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]')
            [CompletionResult]::new('--range', '--range', [CompletionResultType]::ParameterName, 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted')
            [CompletionResult]::new('--max-line', '--max-line', [CompletionResultType]::ParameterName, 'Fail on a line longer than SIZE, which also limits the memory for one line')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How to write output to a pipe')
            [CompletionResult]::new('--simd', '--simd', [CompletionResultType]::ParameterName, 'Instruction set used to search for line ends and fields')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--zero-terminated', '--zero-terminated', [CompletionResultType]::ParameterName, 'Lines end with NUL, not newline')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;gen' {
            [CompletionResult]::new('--total', '--total', [CompletionResultType]::ParameterName, 'Write SIZE bytes; the last line of a log is adjusted to end there [default: until the reader exits]')
            [CompletionResult]::new('--rate', '--rate', [CompletionResultType]::ParameterName, 'Write at most SIZE bytes per second, in pieces of about 10 ms [default: unlimited]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;sink' {
            [CompletionResult]::new('--verify', '--verify', [CompletionResultType]::ParameterName, 'Compare the bytes with those of ''pipemark gen CONTENT''')
            [CompletionResult]::new('--total', '--total', [CompletionResultType]::ParameterName, 'Fail unless exactly SIZE bytes arrive')
            [CompletionResult]::new('--block', '--block', [CompletionResultType]::ParameterName, 'Bytes per read; a larger packet of an O_DIRECT pipe is truncated')
            [CompletionResult]::new('--recv', '--recv', [CompletionResultType]::ParameterName, 'How to receive bytes')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Print bytes and rate every TIME, such as 1s, laid out as by iperf3 but in bytes')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;chain' {
            [CompletionResult]::new('--total', '--total', [CompletionResultType]::ParameterName, 'Bytes per run and pair [default: chosen for each length, so that starting the processes takes at most 5 % of the time]')
            [CompletionResult]::new('--place', '--place', [CompletionResultType]::ParameterName, 'CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: free]')
            [CompletionResult]::new('--capacity', '--capacity', [CompletionResultType]::ParameterName, 'Pipe capacity: default, quota, or a size [default: default]')
            [CompletionResult]::new('--stage', '--stage', [CompletionResultType]::ParameterName, 'Command of each stage, with its arguments; ''relay'' means pipemark''s own relay [default: cat]')
            [CompletionResult]::new('--source', '--source', [CompletionResultType]::ParameterName, 'Command that writes {total} bytes, in place of pipemark''s own source and sink')
            [CompletionResult]::new('--length', '--length', [CompletionResultType]::ParameterName, 'Number of stages between source and sink [default: 0,1,2,4,8,16,32,64]')
            [CompletionResult]::new('--send', '--send', [CompletionResultType]::ParameterName, 'How the writer sends [default: splice; write if --verify is xor or full]')
            [CompletionResult]::new('--recv', '--recv', [CompletionResultType]::ParameterName, 'How the reader receives [default: splice; read if --verify is xor or full]')
            [CompletionResult]::new('--verify', '--verify', [CompletionResultType]::ParameterName, 'How to check the bytes [default: count]')
            [CompletionResult]::new('--content', '--content', [CompletionResultType]::ParameterName, 'Content of the stream: pattern, or text for stages that work on lines [default: pattern]')
            [CompletionResult]::new('--exit', '--exit', [CompletionResultType]::ParameterName, 'Expected exit code of every stage, such as 1 for a grep without a match [default: 0]')
            [CompletionResult]::new('--block', '--block', [CompletionResultType]::ParameterName, 'Bytes per call of the writer [default: 64 KiB]')
            [CompletionResult]::new('--links', '--links', [CompletionResultType]::ParameterName, 'Directory with links by other programs [default: ./links]')
            [CompletionResult]::new('--runs', '--runs', [CompletionResultType]::ParameterName, 'Run each trial exactly N times')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Stop adding runs after TIME, such as 30s or 2min')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Abort a run that takes longer than TIME [default: the expected time plus 60s]')
            [CompletionResult]::new('--sessions', '--sessions', [CompletionResultType]::ParameterName, 'Measure in N sessions, each started afresh, for ''pipemark compare''')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed for the order of runs, the content and the delays [default: 1]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write the results as CSV')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the tables as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--openmetrics', '--openmetrics', [CompletionResultType]::ParameterName, 'Write estimates as OpenMetrics text, for example for node_exporter''s textfile collector')
            [CompletionResult]::new('--benchmark-json', '--benchmark-json', [CompletionResultType]::ParameterName, 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial')
            [CompletionResult]::new('--json-lines', '--json-lines', [CompletionResultType]::ParameterName, 'Write a line of JSON as each run and each trial ends')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Label for this measurement, such as before-upgrade')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--to', '--to', [CompletionResultType]::ParameterName, 'Measure lengths 0, 1, 2, 4, 8 and so on up to N, in place of --length')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no tables and no progress, only errors and exports')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print all tables, figures and findings instead of one screen')
            [CompletionResult]::new('--no-save', '--no-save', [CompletionResultType]::ParameterName, 'Do not save this measurement in the history')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;why' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Sample the running pipelines that have a process of this name')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--access', '--access', [CompletionResultType]::ParameterName, 'Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list')
            [CompletionResult]::new('--for', '--for', [CompletionResultType]::ParameterName, 'Sample for TIME, then leave the pipeline running [default: 2s for a running pipeline, otherwise until it ends]')
            [CompletionResult]::new('--trace', '--trace', [CompletionResultType]::ParameterName, 'Write what was seen to FILE, as a trace that --replay reads')
            [CompletionResult]::new('--replay', '--replay', [CompletionResultType]::ParameterName, 'Conclude from the trace in FILE, without a pipeline')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Save the activity of each stage in the history; ''pipemark report'' charts it over time')
            [CompletionResult]::new('--no-touch', '--no-touch', [CompletionResultType]::ParameterName, 'Never open a pipe, not even to read its capacity')
            [CompletionResult]::new('--explain', '--explain', [CompletionResultType]::ParameterName, 'Also list the other causes that were considered, with the gain without each, and why they weren''t chosen')
            [CompletionResult]::new('--redact', '--redact', [CompletionResultType]::ParameterName, 'In the trace, replace arguments and names of files, hosts and unknown programs by placeholders')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;watch' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Sample the running pipelines that have a process of this name')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--access', '--access', [CompletionResultType]::ParameterName, 'Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list')
            [CompletionResult]::new('--for', '--for', [CompletionResultType]::ParameterName, 'Watch for TIME, then leave the pipeline running [default: until it ends]')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Update the screen, or print a line, every TIME')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Save the activity of each stage in the history; ''pipemark report'' charts it over time')
            [CompletionResult]::new('--no-touch', '--no-touch', [CompletionResultType]::ParameterName, 'Never open a pipe, not even to read its capacity')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;tune' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Sample the running pipelines that have a process of this name')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write all results as JSON to FILE; ''-'' is standard output')
            [CompletionResult]::new('--access', '--access', [CompletionResultType]::ParameterName, 'Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list')
            [CompletionResult]::new('--for', '--for', [CompletionResultType]::ParameterName, 'Compare for TIME; a longer time gives a narrower confidence interval')
            [CompletionResult]::new('--capacity', '--capacity', [CompletionResultType]::ParameterName, 'Capacity to try')
            [CompletionResult]::new('--pipe', '--pipe', [CompletionResultType]::ParameterName, 'Change only the N-th pipe, counted from the source')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'End after TIME [default: 1min, or 30 times the pipeline''s time if that is longer, at most 10min]')
            [CompletionResult]::new('--sample', '--sample', [CompletionResultType]::ParameterName, 'Keep at most SIZE of recorded data in memory [default: 256m, or a tenth of the memory]')
            [CompletionResult]::new('--prepare', '--prepare', [CompletionResultType]::ParameterName, 'Run COMMAND before each run, to undo what a run changes')
            [CompletionResult]::new('-S', '-S ', [CompletionResultType]::ParameterName, 'Shell that runs the pipeline [default: bash if it is your shell, otherwise sh]')
            [CompletionResult]::new('--shell', '--shell', [CompletionResultType]::ParameterName, 'Shell that runs the pipeline [default: bash if it is your shell, otherwise sh]')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'Smallest change that counts, such as 5%')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'Exit with the verdict''s code if the fastest pipeline has this verdict; see ''pipemark help exit-codes''')
            [CompletionResult]::new('--markdown', '--markdown', [CompletionResultType]::ParameterName, 'Write the result as Markdown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Save the activity of each stage in the history; ''pipemark report'' charts it over time')
            [CompletionResult]::new('--no-touch', '--no-touch', [CompletionResultType]::ParameterName, 'Never open a pipe, not even to read its capacity')
            [CompletionResult]::new('--without-last', '--without-last', [CompletionResultType]::ParameterName, 'Leave out the last stage')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Run the pipeline repeatedly, whatever it changes')
            [CompletionResult]::new('--rerun-source', '--rerun-source', [CompletionResultType]::ParameterName, 'Run a source such as curl in each run, instead of replaying its recorded output')
            [CompletionResult]::new('--live', '--live', [CompletionResultType]::ParameterName, 'Start the pipeline once, and only try larger pipes')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;report' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the page to FILE; ''-'' is standard output [default: report.html, unless another program''s file has that name]')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the page to FILE; ''-'' is standard output [default: report.html, unless another program''s file has that name]')
            [CompletionResult]::new('--db', '--db', [CompletionResultType]::ParameterName, 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]')
            [CompletionResult]::new('--terminal', '--terminal', [CompletionResultType]::ParameterName, 'Draw the main charts in the terminal instead')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;list' {
            [CompletionResult]::new('--entrants', '--entrants', [CompletionResultType]::ParameterName, 'Directory with the programs [default: ./entrants]')
            [CompletionResult]::new('--only', '--only', [CompletionResultType]::ParameterName, 'Use only these languages, by directory name; ''run'' also measures the baseline of the ratios')
            [CompletionResult]::new('--links', '--links', [CompletionResultType]::ParameterName, 'Directory with links by other programs [default: ./links]')
            [CompletionResult]::new('--write', '--write', [CompletionResultType]::ParameterName, 'Write the reference code to DIR; for ''list contract''')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How to print results')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;relay' {
            [CompletionResult]::new('--capacity', '--capacity', [CompletionResultType]::ParameterName, 'Set the capacity of the pipes on both sides; ''keep'' leaves it unchanged [default: 1m, or 256k if the output is a file]')
            [CompletionResult]::new('--method', '--method', [CompletionResultType]::ParameterName, 'How to move bytes')
            [CompletionResult]::new('--buffer', '--buffer', [CompletionResultType]::ParameterName, 'Buffer up to SIZE bytes in memory, so that input and output can pause independently')
            [CompletionResult]::new('--start-at', '--start-at', [CompletionResultType]::ParameterName, 'Start writing when the buffer is PERCENT full; wait for that level again whenever the buffer runs empty [default: 0]')
            [CompletionResult]::new('--stop-at', '--stop-at', [CompletionResultType]::ParameterName, 'Once the buffer is full, read again only when it is at most PERCENT full [default: 100]')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'Show elapsed time, bytes delivered, rate and time left: one line on a terminal, otherwise a line per interval')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Update progress every TIME [default: 1s]')
            [CompletionResult]::new('--size', '--size', [CompletionResultType]::ParameterName, 'Expected number of bytes, for percentage and time left [default: the rest of the input, if it is a file]')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Pass at most RATE bytes per second, such as 20m')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Change the limit of the running relay PID, which must have been started with --limit')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Print a line of statistics to standard error at the end')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pipemark;help' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
