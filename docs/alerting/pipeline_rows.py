"""Rows of the table: whether it works, and what becomes of events."""

from docs.alerting.table import Alert, Row, quantile, share

WORK, EVENTS = "Is it working?", "What becomes of events"

ROWS = (
    Row(
        WORK,
        "Pages that answer",
        'min by (job, instance) (up{${of}job=~"rankstream.*"})',
        "short",
        "{{job}} {{instance}}",
        Alert(
            "RankstreamDown",
            "< 1",
            120,
            "critical",
            "{{ $labels.job }} at {{ $labels.instance }} does not answer",
            "Read the end of its log. A worker starts its roles again by itself, "
            "unless it ends with status 78: then its last line names the remedy.",
            "docs/refusals.md",
        ),
    ),
    Row(
        WORK,
        "1 where Prometheus reads no page",
        'absent(up{${of}job=~"rankstream.*"})',
        "short",
        "no page",
        Alert(
            "RankstreamUnwatched",
            "> 0",
            300,
            "critical",
            "Prometheus reads no page of rankstream",
            "See whether anything runs at all, and whether jobs of Prometheus have "
            "names that begin with `rankstream`, and find their targets.",
            "docs/topics.md",
        ),
    ),
    Row(
        WORK,
        "Roles that no page tells of any more",
        "max by (job, role) (present_over_time(rankstream_ready{$of}[$window]))"
        " unless max by (job, role) (rankstream_ready{$of})"
        " or max by (job) (present_over_time(rankstream_serve_ready{$of}[$window]))"
        " unless max by (job) (rankstream_serve_ready{$of})",
        "short",
        "{{job}} {{role}}",
        Alert(
            "RankstreamGone",
            "> 0",
            300,
            "critical",
            "no page of {{ $labels.job }} tells of {{ $labels.role }} any more",
            "A process that ended is no target where names are looked up, so nothing "
            "else tells. Read the end of its log, and start it again. Where it was "
            "taken away on purpose, silence the alert: it ends twelve hours later.",
            "docs/refusals.md",
        ),
        43_200.0,
    ),
    Row(
        WORK,
        "Processes that do their work",
        "min by (job, role) (rankstream_ready{$of}) or "
        "min by (job) (rankstream_serve_ready{$of})",
        "short",
        "{{job}} {{role}}",
        Alert(
            "RankstreamNotReady",
            "< 1",
            300,
            "critical",
            "{{ $labels.role }} of {{ $labels.job }} does not do its work",
            "Ask its page for `/readyz`: it says why. Where it waits for Kafka or "
            "Redis, bring these back; nothing is lost meanwhile.",
            "docs/topics.md",
        ),
    ),
    Row(
        WORK,
        "Lag, seconds",
        "max by (job, stage, partition) (rankstream_lag_seconds{$of}) or "
        "max by (job, role, topic, partition) (rankstream_source_lag_seconds{$of})",
        "s",
        "{{stage}}{{role}} {{topic}} {{partition}}",
        Alert(
            "RankstreamLag",
            "> 300",
            300,
            "warning",
            "{{ $labels.stage }} {{ $labels.role }} is minutes behind in partition "
            "{{ $labels.partition }}",
            "After an outage it catches up by itself. Else see whether events come "
            "faster than before, or commits take longer. Where its process uses a "
            "whole core, start another worker; if all partitions have one each, give "
            "the log more.",
            "docs/runbooks/more-partitions.md",
            is_time=True,
        ),
    ),
    Row(
        WORK,
        "Lag, records",
        "max by (job, stage, partition) (rankstream_lag_records{$of}) or "
        "max by (job, role, topic, partition) (rankstream_source_lag_records{$of})",
        "short",
        "{{stage}}{{role}} {{topic}} {{partition}}",
    ),
    Row(
        WORK,
        "Commits, 99 of 100 take less",
        quantile("rankstream_commit_duration_seconds", "job, stage"),
        "s",
        "{{stage}}",
        Alert(
            "RankstreamCommitsSlow",
            "> 10",
            900,
            "warning",
            "commits of {{ $labels.stage }} take longer than 10 s",
            "Look at the brokers: full disks, replicas that are behind, a transaction "
            "coordinator that moves. Each commit is one transaction.",
            "docs/runbooks/disk.md",
        ),
    ),
    Row(
        WORK,
        "Clocks ahead of the broker's",
        "max by (job, stage) (abs(rankstream_clock_difference_seconds{$of}))",
        "s",
        "{{stage}}",
        Alert(
            "RankstreamClockDiffers",
            "> 30",
            300,
            "warning",
            "the clock of {{ $labels.job }} and that of a broker differ",
            "Set both by NTP. The broker's clock judges events, so nothing is counted "
            "wrongly because of the worker's.",
            "docs/topics.md",
        ),
    ),
    Row(
        EVENTS,
        "Events a second",
        "sum by (job, stage) (rate(rankstream_consumed_total{$of}[$window]))",
        "reqps",
        "{{stage}}",
    ),
    Row(
        EVENTS,
        "Lists applied a second",
        "sum by (job) (rate(rankstream_applied_impressions_total{$of}[$window]))",
        "reqps",
        "{{job}}",
    ),
    Row(
        EVENTS,
        "Share that is late",
        share(
            "rankstream_late_total{$of}", 'rankstream_consumed_total{${of}stage="fold"}'
        ),
        "percentunit",
        "{{job}}",
        Alert(
            "RankstreamLateEvents",
            "> 0.01",
            300,
            "warning",
            "more than 1 % of the events of {{ $labels.job }} come too late",
            "Events are late when their list's window is closed. Find the sender that "
            "holds events back, or whose clock is behind; the topic `late` has them. "
            "Where delays are normal, raise `time.disorder_ms`.",
            "docs/reliability.md",
        ),
        900.0,
    ),
    Row(
        EVENTS,
        "Share that are orphans",
        share(
            "rankstream_orphan_total{$of}",
            'rankstream_consumed_total{${of}stage="fold"}',
        ),
        "percentunit",
        "{{job}}",
        Alert(
            "RankstreamOrphanClicks",
            "> 0.05",
            300,
            "warning",
            "more than 5 % of the events of {{ $labels.job }} are clicks without list",
            "See whether services send lists at all, under the ids that clicks name, "
            "and before the disorder is over.",
            "docs/events.md",
        ),
        900.0,
    ),
    Row(
        EVENTS,
        "Share of dead letters",
        share(
            "rankstream_dead_letter_total{$of}",
            'rankstream_consumed_total{${of}stage=~"ingest.*"}',
        ),
        "percentunit",
        "{{job}}",
        Alert(
            "RankstreamDeadLetters",
            "> 0.001",
            300,
            "warning",
            "more than 1 of 1,000 events of {{ $labels.job }} are refused",
            "`rankstream dlq count` has the codes, `rankstream dlq show` the reason of "
            "one. Correct the sender, and replay what can be.",
            "docs/runbooks/dead-letters.md",
        ),
        900.0,
    ),
    Row(
        EVENTS,
        "From the end of a window to the join, 99 of 100 take less",
        quantile("rankstream_join_delay_seconds", "job"),
        "s",
        "{{job}}",
    ),
    Row(
        EVENTS,
        "Watermark behind now",
        "time() - min by (job) (rankstream_watermark_timestamp_seconds{$of})",
        "s",
        "{{job}}",
    ),
)
