# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_pipemark_global_optspecs
    string join \n completions= h/help V/version
end

function __fish_pipemark_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_pipemark_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_pipemark_using_subcommand
    set -l cmd (__fish_pipemark_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c pipemark -n "__fish_pipemark_needs_command" -l completions -d 'Print completions for a shell' -r -f -a "bash\t''
elvish\t''
fish\t''
powershell\t''
zsh\t''"
complete -c pipemark -n "__fish_pipemark_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_needs_command" -s V -l version -d 'Print version'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "run" -d 'Run suites of predefined experiments'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "bw" -d 'Measure pipe throughput, for one setting or a matrix of settings'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "latency" -d 'Measure round-trip times'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "compare" -d 'Compare two measurements: better, worse, same or inconclusive'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "ab" -d 'Time commands and compare them: which is faster, and by how much?'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "history" -d 'Show earlier measurements and their trends'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "lines" -d 'Transform lines: count spaces, number lines, cut fields'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "gen" -d 'Generate lines or bytes, as the source of a pipeline'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "sink" -d 'Measure the rate of standard input and check its bytes, as the sink of a pipeline'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "chain" -d 'Measure the cost of one more process in a pipeline'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "why" -d 'Find out what limits a pipeline'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "watch" -d 'Show a running pipeline on a live screen'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "tune" -d 'Try changes of a pipeline, and print the fastest one; try larger pipes in a running pipeline'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "report" -d 'Write results as an HTML page, or draw them in the terminal'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "list" -d 'List suites, links, methods and this machine\'s properties'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "relay" -d 'Pass standard input to standard output like cat, without copying bytes where possible'
complete -c pipemark -n "__fish_pipemark_needs_command" -f -a "help" -d 'Explain a verb or a topic, such as method or units'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l scale -d 'Multiply the suites\' bytes and times per run by F' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l against -d 'Measure your own program too, as a row of the suite\'s main table; may be repeated' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l figure -d 'Read the result from the output of --against: rate,MiB/s=REGEX or time,s=REGEX' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l runs -d 'Run each trial exactly N times' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l budget -d 'Stop adding runs after TIME, such as 30s or 2min' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l limit -d 'Abort a run that takes longer than TIME [default: the expected time plus 60s]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l sessions -d 'Measure in N sessions, each started afresh, for \'pipemark compare\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l seed -d 'Seed for the order of runs, the content and the delays [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l entrants -d 'Directory with the programs [default: ./entrants]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l only -d 'Use only these languages, by directory name; \'run\' also measures the baseline of the ratios' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l links -d 'Directory with links by other programs [default: ./links]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l verify -d 'How programs in other languages check the bytes: full (a checksum that detects lost and moved blocks) or xor (as in the published benchmark) [default: the suite\'s]' -r -f -a "full\t''
xor\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l csv -d 'Write the results as CSV' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l markdown -d 'Write the tables as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l openmetrics -d 'Write estimates as OpenMetrics text, for example for node_exporter\'s textfile collector' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l benchmark-json -d 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l json-lines -d 'Write a line of JSON as each run and each trial ends' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l label -d 'Label for this measurement, such as before-upgrade' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l dry-run -d 'List the trials and estimate the time; measure nothing'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l build -d 'Rebuild the programs in other languages; measure nothing'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -s q -l quiet -d 'Print no tables and no progress, only errors and exports'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l all -d 'Print all tables, figures and findings instead of one screen'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l claims -d 'Print each claim of the suite\'s document with its answer, its range and the trials that decide it'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -l no-save -d 'Do not save this measurement in the history'
complete -c pipemark -n "__fish_pipemark_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l link -d 'Mechanism between writer and reader [default: pipe]' -r -f -a "pipe\t''
fifo\t''
socketpair\t''
unix-stream\t''
unix-seqpacket\t''
unix-dgram\t''
tcp\t''
sysv-mq\t''
posix-mq\t''
shm\t''
process-vm\t''
pty\t''
null\t''
memory-copy\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l place -d 'CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: cross]' -r -f -a "free\t''
same\t''
cross\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l verify -d 'How to check the bytes [default: count]' -r -f -a "none\t''
count\t''
xor\t''
full\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l send -d 'How the writer sends [default: write]' -r -f -a "write\t''
vmsplice\t''
vmsplice-gift\t''
sendfile\t''
splice\t''
tee\t''
io-uring\t''
in-place\t''
zerocopy\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l recv -d 'How the reader receives [default: read]' -r -f -a "read\t''
splice\t''
vmsplice\t''
io-uring\t''
in-place\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l capacity -d 'Pipe capacity: default, quota, or a size [default: default]' -r -f -a "default\t''
quota\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l total -d 'Bytes per run and pair [default: limited by --time]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l time -d 'Time per run, such as 200ms [default: 250ms]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l block -d 'Bytes per call of the writer [default: 64 KiB]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l mode -d 'throughput: a one-way stream; latency: round trips of one block [default: throughput]' -r -f -a "throughput\t''
latency\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l pairs -d 'Number of writer and reader pairs that run at once [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l writers -d 'Number of writers on one pipe; split records are counted [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l readers -d 'Number of readers, each of which receives every block (links by other programs) [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l wait -d 'How writer and reader wait [default: block]' -r -f -a "block\t''
poll\t''
spin\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l pages -d 'Page size of the buffers [default: base]' -r -f -a "base\t''
huge\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l align -d 'Offset of the buffers from a page boundary, in bytes [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l buffer -d 'Socket send and receive buffers: default, or a size [default: default]' -r -f -a "default\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l rseq -d 'Restartable sequences (rseq) of writer and reader: system (the system\'s default) or off [default: system]' -r -f -a "system\t''
off\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l rate -d 'Messages per second, each timed from when it is due; closed: send each message after the reply to the previous [default: closed]' -r -f -a "closed\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l gap -d 'Pause between messages, such as 0,100us,1ms [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l write-delay -d 'Busy time of the writer before each call, in microseconds by default: random, 0.5 to 1.5 times the value [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l read-delay -d 'Busy time of the reader after each call, in microseconds by default: random, 0.5 to 1.5 times the value [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l blocks -d 'Blocks per run and pair, in place of --total [default: limited by --time]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l read-block -d 'Bytes per call of the reader [default: same as --block]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l links -d 'Directory with links by other programs [default: ./links]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l runs -d 'Run each trial exactly N times' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l budget -d 'Stop adding runs after TIME, such as 30s or 2min' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l limit -d 'Abort a run that takes longer than TIME [default: the expected time plus 60s]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l sessions -d 'Measure in N sessions, each started afresh, for \'pipemark compare\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l seed -d 'Seed for the order of runs, the content and the delays [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l csv -d 'Write the results as CSV' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l markdown -d 'Write the tables as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l openmetrics -d 'Write estimates as OpenMetrics text, for example for node_exporter\'s textfile collector' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l benchmark-json -d 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l json-lines -d 'Write a line of JSON as each run and each trial ends' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l label -d 'Label for this measurement, such as before-upgrade' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l baseline -d 'For each trial, also measure a baseline with these values, and show the ratio to it' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l interval -d 'Print a line every TIME during a run [default: sample every 10ms, print nothing]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l cpu-map -d 'With --place all: also write the map as CSV, as core-to-core-latency does' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -s q -l quiet -d 'Print no tables and no progress, only errors and exports'
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l all -d 'Print all tables, figures and findings instead of one screen'
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l claims -d 'Print each claim of the suite\'s document with its answer, its range and the trials that decide it'
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -l no-save -d 'Do not save this measurement in the history'
complete -c pipemark -n "__fish_pipemark_using_subcommand bw" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l link -d 'Mechanism between writer and reader [default: pipe]' -r -f -a "pipe\t''
fifo\t''
socketpair\t''
unix-stream\t''
unix-seqpacket\t''
unix-dgram\t''
tcp\t''
sysv-mq\t''
posix-mq\t''
shm\t''
process-vm\t''
pty\t''
null\t''
memory-copy\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l place -d 'CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: cross]' -r -f -a "free\t''
same\t''
cross\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l wait -d 'How writer and reader wait [default: block]' -r -f -a "block\t''
poll\t''
spin\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l rate -d 'Messages per second, each timed from when it is due; closed: send each message after the reply to the previous [default: closed]' -r -f -a "closed\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l gap -d 'Pause between messages, such as 0,100us,1ms [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l time -d 'Time per run, such as 200ms [default: 250ms]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l block -d 'Bytes per call of the writer [default: 64]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l pairs -d 'Number of writer and reader pairs that run at once [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l verify -d 'How to check the bytes [default: count]' -r -f -a "none\t''
count\t''
xor\t''
full\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l send -d 'How the writer sends [default: write]' -r -f -a "write\t''
vmsplice\t''
vmsplice-gift\t''
sendfile\t''
splice\t''
tee\t''
io-uring\t''
in-place\t''
zerocopy\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l recv -d 'How the reader receives [default: read]' -r -f -a "read\t''
splice\t''
vmsplice\t''
io-uring\t''
in-place\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l pages -d 'Page size of the buffers [default: base]' -r -f -a "base\t''
huge\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l align -d 'Offset of the buffers from a page boundary, in bytes [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l capacity -d 'Pipe capacity: default, quota, or a size [default: default]' -r -f -a "default\t''
quota\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l buffer -d 'Socket send and receive buffers: default, or a size [default: default]' -r -f -a "default\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l rseq -d 'Restartable sequences (rseq) of writer and reader: system (the system\'s default) or off [default: system]' -r -f -a "system\t''
off\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l total -d 'Bytes per run and pair [default: limited by --time]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l links -d 'Directory with links by other programs [default: ./links]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l runs -d 'Run each trial exactly N times' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l budget -d 'Stop adding runs after TIME, such as 30s or 2min' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l limit -d 'Abort a run that takes longer than TIME [default: the expected time plus 60s]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l sessions -d 'Measure in N sessions, each started afresh, for \'pipemark compare\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l seed -d 'Seed for the order of runs, the content and the delays [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l csv -d 'Write the results as CSV' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l markdown -d 'Write the tables as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l openmetrics -d 'Write estimates as OpenMetrics text, for example for node_exporter\'s textfile collector' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l benchmark-json -d 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l json-lines -d 'Write a line of JSON as each run and each trial ends' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l label -d 'Label for this measurement, such as before-upgrade' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l baseline -d 'For each trial, also measure a baseline with these values, and show the ratio to it' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l interval -d 'Print a line every TIME during a run [default: sample every 10ms, print nothing]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l cpu-map -d 'With --place all: also write the map as CSV, as core-to-core-latency does' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -s q -l quiet -d 'Print no tables and no progress, only errors and exports'
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l all -d 'Print all tables, figures and findings instead of one screen'
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l claims -d 'Print each claim of the suite\'s document with its answer, its range and the trials that decide it'
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -l no-save -d 'Do not save this measurement in the history'
complete -c pipemark -n "__fish_pipemark_using_subcommand latency" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l base -d 'Take trials with these parameters as the reference' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l new -d 'Compare the reference with the trials that differ only in these parameters' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l threshold -d 'Smallest change that counts, such as 5%' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l fail-on -d 'Exit with the verdict\'s code if a trial has this verdict; see \'pipemark help exit-codes\'' -r -f -a "worse\t'A trial is worse: code 10'
missing\t'A trial was not measured on one or both sides: code 11'
no-verdict\t'A trial has no verdict, for example when each side has one session: code 15'
inconclusive\t'A trial is inconclusive (or has no verdict, unless no-verdict is given): code 12'
cant-tell\t'Former name of inconclusive'
better\t'A trial is better: code 13'
same\t'A trial is unchanged: code 14'"
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l with -d 'Parameters of the trial [default: those of \'pipemark bw\']' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l sessions -d 'Measure in N sessions; 8 or more are recommended' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l rounds -d 'Measure each side N times per session' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l csv -d 'Write the results as CSV' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l markdown -d 'Write the tables as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l aa -d 'Compare one trial with itself on this machine; print the smallest detectable change'
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -l all -d 'Print all rows'
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -s q -l quiet -d 'Print no tables and no progress, only errors and exports'
complete -c pipemark -n "__fish_pipemark_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s P -l parameter -d 'Compare values: replace {NAME} in commands, hooks and names: threads=1,2,4 or size=1..10:3' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s n -l name -d 'Name a command; repeat for each command' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l reference -d 'Compare with this command, by number or name [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l capacity -d 'Capacity of the pipes between stages: default, or a size; several values compare a single command at each capacity' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l setup -d 'Run COMMAND once, before the first run; give one for all commands, or one for each' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l prepare -d 'Run COMMAND before each run, untimed' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l conclude -d 'Run COMMAND after each run, even a failed one, untimed' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l cleanup -d 'Run COMMAND once, at the end, even after a failure or Ctrl-C' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s S -l shell -d 'Shell that runs commands and hooks' -r -f -a "none\t'No shell: the command is split at blanks; only quotes, backslashes and # comments are special'
sh\t'/bin/sh'
bash\t'bash'"
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l input -d 'Redirect FILE to the standard input of each command [default: /dev/null]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l env -d 'Set an environment variable; may be repeated' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l cpus -d 'Run commands only on these CPUs, such as 0,2-3' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l cold -d 'Evict FILE from the page cache before each run, so that it is read from storage; may be repeated' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l concurrent -d 'Run N copies of each command at once; outputs are compared by length only' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l limit -d 'Abort a run that takes longer than TIME' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s r -l runs -d 'Run each command N times in each session' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l sessions -d 'Measure in N sessions, each started afresh, and compare by session; verdicts then need at least five sessions' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l budget -d 'Stop adding rounds after TIME [default: 1min, 2min with several sessions, or 3min with --catch]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s w -l warmup -d 'Warm up with N rounds in each session; with 0, outputs are compared by length only' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l figure -d 'Read a figure from the command\'s output: the number that REGEX matches, or that its group ( ) matches if it has one' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l by -d 'Rank and judge commands by this figure' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l catch -d 'Decide whether the second command is slower by PERCENT or more, within --budget' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l threshold -d 'Smallest change that counts, such as 5%' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l thresholds -d 'Read the smallest changes that count from FILE (TOML), by command and figure' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l fail-on -d 'Exit with the verdict\'s code if a command has this verdict; see \'pipemark help exit-codes\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l save -d 'Save the figures of all runs in the history under NAME, as sessions to compare later measurements with' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l baseline -d 'Compare each command with the sessions that --save NAME saved on this machine' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l csv -d 'Write the results as CSV' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l markdown -d 'Write the tables as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l json-lines -d 'Write a line of JSON as each run ends' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l hyperfine-json -d 'Write JSON in the format of hyperfine\'s --export-json' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l hyperfine-schema -d 'Schema of --hyperfine-json: that of hyperfine 1 or 2' -r -f -a "1\t'hyperfine 1'
2\t'hyperfine 2'"
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l benchmark-json -d 'Write JSON for github-action-benchmark (customSmallerIsBetter, or customBiggerIsBetter if the figure of --by is better when higher), one figure per command' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l bencher-json -d 'Write JSON for Bencher (Bencher Metric Format), all figures' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l yes -d 'Allow more than 256 commands'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s i -l ignore-failure -d 'Ignore nonzero exit codes'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l ignore-output -d 'Compare commands even if their outputs differ'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l pipeline-memory -d 'Sample the total memory of a command\'s processes every 5 ms, for the figure pipeline-memory'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l bisect -d 'With --catch, exit as \'git bisect run\' expects: 1 if caught, 0 if passed, 125 if undecided or a command fails'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s q -l quiet -d 'Print no tables and no progress, only errors and exports'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -l all -d 'Print every figure, even for more than two commands'
complete -c pipemark -n "__fish_pipemark_using_subcommand ab" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l suite -d 'Only measurements of this suite or verb, such as bw' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l label -d 'Only measurements with this label; * matches any characters, ? one' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l host -d 'Only measurements of the machine NAME; * and ? as in --label' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l since -d 'Only measurements since a date, a time or an age: 2026-01-31, \'2026-01-31 12:00\', 7d' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l limit -d 'List the newest N; 0 lists all' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -f -a "list" -d 'List measurements, newest first (the default)'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -f -a "show" -d 'Print one measurement again [default: the newest]'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -f -a "export" -d 'Write one measurement as JSON, as --json does [default: the newest]'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -f -a "import" -d 'Import JSON from pipemark or hyperfine, CSV, or time(1) logs'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -f -a "delete" -d 'Delete measurements'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and not __fish_seen_subcommand_from list show export import delete trend" -f -a "trend" -d 'Show one trial over time, with its changes'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l suite -d 'Only measurements of this suite or verb, such as bw' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l label -d 'Only measurements with this label; * matches any characters, ? one' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l host -d 'Only measurements of the machine NAME; * and ? as in --label' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l since -d 'Only measurements since a date, a time or an age: 2026-01-31, \'2026-01-31 12:00\', 7d' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l limit -d 'List the newest N; 0 lists all' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from show" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from show" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from show" -l all -d 'Print all tables, figures and findings instead of one screen'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from show" -l claims -d 'Print each claim of the suite\'s document with its answer, its range and the trials that decide it'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from export" -s o -l output -d 'Write to FILE, atomically' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from export" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from import" -l as -d 'Parameters of the measurements, such as block=64k or total=1g; KEY alone reads the value from the file' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from import" -l label -d 'Label the measurements' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from import" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from delete" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask for confirmation; required if standard input is not a terminal'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l suite -d 'Only measurements of this suite or verb, such as bw' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l label -d 'Only measurements with this label; * matches any characters, ? one' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l host -d 'Only measurements of the machine NAME; * and ? as in --label' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l since -d 'Only measurements since a date, a time or an age: 2026-01-31, \'2026-01-31 12:00\', 7d' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l limit -d 'Use only the newest N runs; 0 uses all runs' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l threshold -d 'Smallest change that counts, such as 5%' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l fail-on -d 'Exit with code 10 (worse) or 13 (better) if the latest change of at least one trial has this verdict' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand history; and __fish_seen_subcommand_from trend" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -a "spaces" -d 'Prefix each line with its number of spaces, as [spaces: N] or [spaces: >6] (the default transform)'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -a "number" -d 'Prefix each line with its number and a tab'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -a "length" -d 'Replace each line with its length in bytes'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -a "upper" -d 'Convert the letters a-z to upper case; leave other bytes unchanged'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -a "identity" -d 'Copy each line unchanged'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and not __fish_seen_subcommand_from spaces number length upper identity field" -a "field" -d 'Replace each line with its N-th field, counted from 1; the result is empty if there is no such field'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from spaces" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l start -d 'Number of the first line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from number" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from length" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from upper" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from identity" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -s d -l delimiter -d 'Byte between fields [default: tab]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l threads -d 'Use at most N threads; auto: up to four for a file, one for anything else' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l batch -d 'Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise up to 64k]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l range -d 'Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l max-line -d 'Fail on a line longer than SIZE, which also limits the memory for one line' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l send -d 'How to write output to a pipe' -r -f -a "write\t'write(2), which copies the bytes'
give-away\t'vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l simd -d 'Instruction set used to search for line ends and fields' -r -f -a "best\t'The widest vector instructions of this CPU'
portable\t'Vector instructions that every CPU has; slower, same output'"
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -s z -l zero-terminated -d 'Lines end with NUL, not newline'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -l stats -d 'Print statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand lines; and __fish_seen_subcommand_from field" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand gen" -l total -d 'Write SIZE bytes; the last line of a log is adjusted to end there [default: until the reader exits]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand gen" -l rate -d 'Write at most SIZE bytes per second, in pieces of about 10 ms [default: unlimited]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand gen" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -l verify -d 'Compare the bytes with those of \'pipemark gen CONTENT\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -l total -d 'Fail unless exactly SIZE bytes arrive' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -l block -d 'Bytes per read; a larger packet of an O_DIRECT pipe is truncated' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -l recv -d 'How to receive bytes' -r -f -a "read\t'read(2), which copies the bytes'
splice\t'splice(2) to /dev/null: pages of a pipe are discarded unread'"
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -l interval -d 'Print bytes and rate every TIME, such as 1s, laid out as by iperf3 but in bytes' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand sink" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l total -d 'Bytes per run and pair [default: chosen for each length, so that starting the processes takes at most 5 % of the time]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l place -d 'CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: free]' -r -f -a "free\t''
same\t''
cross\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l capacity -d 'Pipe capacity: default, quota, or a size [default: default]' -r -f -a "default\t''
quota\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l stage -d 'Command of each stage, with its arguments; \'relay\' means pipemark\'s own relay [default: cat]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l source -d 'Command that writes {total} bytes, in place of pipemark\'s own source and sink' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l length -d 'Number of stages between source and sink [default: 0,1,2,4,8,16,32,64]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l send -d 'How the writer sends [default: splice; write if --verify is xor or full]' -r -f -a "write\t''
vmsplice\t''
vmsplice-gift\t''
sendfile\t''
splice\t''
tee\t''
io-uring\t''
in-place\t''
zerocopy\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l recv -d 'How the reader receives [default: splice; read if --verify is xor or full]' -r -f -a "read\t''
splice\t''
vmsplice\t''
io-uring\t''
in-place\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l verify -d 'How to check the bytes [default: count]' -r -f -a "none\t''
count\t''
xor\t''
full\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l content -d 'Content of the stream: pattern, or text for stages that work on lines [default: pattern]' -r -f -a "pattern\t''
text\t''"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l exit -d 'Expected exit code of every stage, such as 1 for a grep without a match [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l block -d 'Bytes per call of the writer [default: 64 KiB]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l links -d 'Directory with links by other programs [default: ./links]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l runs -d 'Run each trial exactly N times' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l budget -d 'Stop adding runs after TIME, such as 30s or 2min' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l limit -d 'Abort a run that takes longer than TIME [default: the expected time plus 60s]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l sessions -d 'Measure in N sessions, each started afresh, for \'pipemark compare\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l seed -d 'Seed for the order of runs, the content and the delays [default: 1]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l csv -d 'Write the results as CSV' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l markdown -d 'Write the tables as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l openmetrics -d 'Write estimates as OpenMetrics text, for example for node_exporter\'s textfile collector' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l benchmark-json -d 'Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l json-lines -d 'Write a line of JSON as each run and each trial ends' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l label -d 'Label for this measurement, such as before-upgrade' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l to -d 'Measure lengths 0, 1, 2, 4, 8 and so on up to N, in place of --length' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -s q -l quiet -d 'Print no tables and no progress, only errors and exports'
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l all -d 'Print all tables, figures and findings instead of one screen'
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l claims -d 'Print each claim of the suite\'s document with its answer, its range and the trials that decide it'
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -l no-save -d 'Do not save this measurement in the history'
complete -c pipemark -n "__fish_pipemark_using_subcommand chain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l name -d 'Sample the running pipelines that have a process of this name' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l unit -d 'Sample the running pipelines of a unit of systemd, such as nightly.service' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l container -d 'Sample the running pipelines in a container of docker or podman, given by its name or ID' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l cgroup -d 'Sample the running pipelines in the control group PATH, and in those below it' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l access -d 'Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list' -r -f -a "syscall\t'The system call in which a thread waits'
wchan\t'The kernel function in which a thread waits'
stat\t'Whether a thread runs or sleeps'"
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l for -d 'Sample for TIME, then leave the pipeline running [default: 2s for a running pipeline, otherwise until it ends]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l trace -d 'Write what was seen to FILE, as a trace that --replay reads' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l replay -d 'Conclude from the trace in FILE, without a pipeline' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l folded -d 'Write the sampled stacks to FILE, one per line with its count, as flame graph tools read them' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l record -d 'Save the activity of each stage in the history; \'pipemark report\' charts it over time'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l no-touch -d 'Never open a pipe, not even to read its capacity'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l no-profile -d 'Don\'t sample which functions the busiest stages execute'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l explain -d 'Also list the other causes that were considered, with the gain without each, and why they weren\'t chosen'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l functions -d 'Also list the functions in which the busiest stages spent most time'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -l redact -d 'In the trace, replace arguments and names of files, hosts and unknown programs by placeholders'
complete -c pipemark -n "__fish_pipemark_using_subcommand why" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l name -d 'Sample the running pipelines that have a process of this name' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l unit -d 'Sample the running pipelines of a unit of systemd, such as nightly.service' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l container -d 'Sample the running pipelines in a container of docker or podman, given by its name or ID' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l cgroup -d 'Sample the running pipelines in the control group PATH, and in those below it' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l access -d 'Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list' -r -f -a "syscall\t'The system call in which a thread waits'
wchan\t'The kernel function in which a thread waits'
stat\t'Whether a thread runs or sleeps'"
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l for -d 'Watch for TIME, then leave the pipeline running [default: until it ends]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l interval -d 'Update the screen, or print a line, every TIME' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l openmetrics -d 'Publish the latest figures as OpenMetrics every --interval: in FILE, which is replaced as a whole, or by HTTP on the UNIX socket SOCKET' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l record -d 'Save the activity of each stage in the history; \'pipemark report\' charts it over time'
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l no-touch -d 'Never open a pipe, not even to read its capacity'
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -l no-profile -d 'Don\'t sample which functions the busiest stages execute'
complete -c pipemark -n "__fish_pipemark_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l name -d 'Sample the running pipelines that have a process of this name' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l unit -d 'Sample the running pipelines of a unit of systemd, such as nightly.service' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l container -d 'Sample the running pipelines in a container of docker or podman, given by its name or ID' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l cgroup -d 'Sample the running pipelines in the control group PATH, and in those below it' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l json -d 'Write all results as JSON to FILE; \'-\' is standard output' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l access -d 'Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list' -r -f -a "syscall\t'The system call in which a thread waits'
wchan\t'The kernel function in which a thread waits'
stat\t'Whether a thread runs or sleeps'"
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l for -d 'Compare for TIME; a longer time gives a narrower confidence interval' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l capacity -d 'Capacity to try' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l pipe -d 'Change only the N-th pipe, counted from the source' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l budget -d 'End after TIME [default: 1min, or 30 times the pipeline\'s time if that is longer, at most 10min]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l sample -d 'Keep at most SIZE of recorded data in memory [default: 256m, or a tenth of the memory]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l prepare -d 'Run COMMAND before each run, to undo what a run changes' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -s S -l shell -d 'Shell that runs the pipeline [default: bash if it is your shell, otherwise sh]' -r -f -a "none\t'No shell: the command is split at blanks; only quotes, backslashes and # comments are special'
sh\t'/bin/sh'
bash\t'bash'"
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l threshold -d 'Smallest change that counts, such as 5%' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l fail-on -d 'Exit with the verdict\'s code if the fastest pipeline has this verdict; see \'pipemark help exit-codes\'' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l markdown -d 'Write the result as Markdown' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l record -d 'Save the activity of each stage in the history; \'pipemark report\' charts it over time'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l no-profile -d 'Don\'t sample which functions the busiest stages execute'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l no-touch -d 'Never open a pipe, not even to read its capacity'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l without-last -d 'Leave out the last stage'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l yes -d 'Run the pipeline repeatedly, whatever it changes'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l rerun-source -d 'Run a source such as curl in each run, instead of replaying its recorded output'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -l live -d 'Start the pipeline once, and only try larger pipes'
complete -c pipemark -n "__fish_pipemark_using_subcommand tune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand report" -s o -l output -d 'Write the page to FILE; \'-\' is standard output [default: report.html, unless another program\'s file has that name]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand report" -l db -d 'History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand report" -l terminal -d 'Draw the main charts in the terminal instead'
complete -c pipemark -n "__fish_pipemark_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand list" -l entrants -d 'Directory with the programs [default: ./entrants]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand list" -l only -d 'Use only these languages, by directory name; \'run\' also measures the baseline of the ratios' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand list" -l links -d 'Directory with links by other programs [default: ./links]' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand list" -l write -d 'Write the reference code to DIR; for \'list contract\'' -r -F
complete -c pipemark -n "__fish_pipemark_using_subcommand list" -l format -d 'How to print results' -r -f -a "text\t'Text for people to read'
markdown\t'GitHub\'s Markdown'
html\t'A web page'
csv\t'A header line, then a line for each row'
json\t'All results, on one line'"
complete -c pipemark -n "__fish_pipemark_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l capacity -d 'Set the capacity of the pipes on both sides; \'keep\' leaves it unchanged [default: 1m, or 256k if the output is a file]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l method -d 'How to move bytes' -r -f -a "fastest\t'The fastest method that the kernel permits for this input and output'
read-write\t'Only read(2) and write(2): every byte is copied'"
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l buffer -d 'Buffer up to SIZE bytes in memory, so that input and output can pause independently' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l start-at -d 'Start writing when the buffer is PERCENT full; wait for that level again whenever the buffer runs empty [default: 0]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l stop-at -d 'Once the buffer is full, read again only when it is at most PERCENT full [default: 100]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l progress -d 'Show elapsed time, bytes delivered, rate and time left: one line on a terminal, otherwise a line per interval' -r -f -a "text\t'Text for people to read'
json\t'One JSON object per line; units: bytes, nanoseconds, bytes per second'"
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l interval -d 'Update progress every TIME [default: 1s]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l name -d 'Begin lines of progress with NAME' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l size -d 'Expected number of bytes, or of lines with --lines, for the bar, percentage and time left [default: the rest of the input, if it is a file]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l lines -d 'Count lines, or with =null the texts that end with a null byte; every byte is then copied' -r -f -a "newline\t'Lines, which end with a newline'
null\t'Texts that end with a null byte'"
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l average -d 'Average rates, and the rate for the time left, over TIME [default: the last interval; for the time left, ten intervals]' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l limit -d 'Pass at most RATE bytes per second, such as 20m' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l set -d 'Change the limit of the running relay PID, which must have been started with --limit' -r
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l stats -d 'Print a line of statistics to standard error at the end'
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -l wait -d 'Show progress, and count its time, only from the first byte on'
complete -c pipemark -n "__fish_pipemark_using_subcommand relay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pipemark -n "__fish_pipemark_using_subcommand help" -s h -l help -d 'Print help (see more with \'--help\')'
