"""Rows of the table: Redis, models, experiments, servers and processes."""

from docs.alerting.table import Alert, Row, quantile, share

MODELS, TRIALS = "Redis and models", "Experiments and canaries"
SERVE, PROCESSES = "rankstream serve", "Processes"

ROWS = (
    Row(
        MODELS,
        "Redis answers",
        "min by (job, role) (rankstream_redis_up{$of}) or "
        "min by (job, model) (rankstream_serve_redis_up{$of})",
        "short",
        "{{job}} {{role}}{{model}}",
        Alert(
            "RankstreamRedisAway",
            "< 1",
            120,
            "critical",
            "Redis does not answer {{ $labels.job }} {{ $labels.role }}",
            "Bring Redis back; an empty one is filled again from the topics. Services "
            "rank on with the last good snapshots meanwhile.",
            "docs/topics.md",
        ),
    ),
    Row(
        MODELS,
        "Failures of Redis",
        "sum by (job) (increase(rankstream_publish_failures_total{$of}[$window])) or "
        "sum by (job, model) (increase("
        "rankstream_serve_redis_failures_total{$of}[$window]))",
        "short",
        "{{job}} {{model}}",
        Alert(
            "RankstreamRedisRefuses",
            "> 0",
            600,
            "warning",
            "Redis does not do what {{ $labels.job }} {{ $labels.model }} asks",
            "The log of the role `publish`, or of the server, says why "
            "(`event=waiting`): memory that ran out, rights, a replica. What is there "
            "is served on.",
            "docs/topics.md",
        ),
    ),
    Row(
        MODELS,
        "Snapshots that were passed over",
        "sum by (job) (increase(rankstream_snapshots_rejected_total{$of}[$window]))",
        "short",
        "{{job}}",
        Alert(
            "RankstreamSnapshotsRejected",
            "> 0",
            0,
            "warning",
            "a record of `snapshots` that {{ $labels.job }} read cannot be served",
            "Run `rankstream snapshots repair`, before compaction takes the good "
            "record away. One that lay there when the role started shows in the count "
            "alone.",
            "docs/topics.md",
        ),
        3_600.0,
    ),
    Row(
        MODELS,
        "Age of models in Redis",
        "time() - "
        "max by (job, model) (rankstream_model_created_timestamp_seconds{$of})",
        "s",
        "{{model}}",
    ),
    Row(
        MODELS,
        "From a list to the version in Redis, 99 of 100 take less",
        quantile("rankstream_list_to_snapshot_seconds", "job, model"),
        "s",
        "{{model}}",
    ),
    Row(
        MODELS,
        "Trainings by outcome",
        "sum by (job, model, outcome) ("
        "increase(rankstream_trainings_total{$of}[$window]))",
        "short",
        "{{model}} {{outcome}}",
        window_s=900.0,
    ),
    Row(
        MODELS,
        "Trainings that were refused",
        "sum by (job, model) ("
        'increase(rankstream_trainings_total{${of}outcome="refused"}[$window]))',
        "short",
        "{{model}}",
        Alert(
            "RankstreamTrainerRefused",
            "> 0",
            0,
            "warning",
            "a training of {{ $labels.model }} was refused",
            "The log of the role `train` says why (`event=training-refused`), and so "
            "does `rankstream monitor`. The version before is served on; a training "
            "that is due is tried again at least every ten minutes.",
            "docs/training.md",
        ),
        900.0,
    ),
    Row(
        MODELS,
        "Rewrites of decisions that were refused",
        "sum by (job, decisions) (increase("
        'rankstream_decision_rewrites_total{${of}outcome="refused"}[$window]))',
        "short",
        "{{decisions}}",
        Alert(
            "RankstreamDecisionsRefused",
            "> 0",
            0,
            "warning",
            "a rewrite of the decisions {{ $labels.decisions }} was refused",
            "The log of the role `decide` says why (`event=decisions-refused`). The "
            "decisions before are served on.",
            "docs/decisions.md",
        ),
        900.0,
    ),
    Row(
        TRIALS,
        "Steps of canaries",
        "sum by (job, model, outcome) ("
        "increase(rankstream_canary_changes_total{$of}[$window]))",
        "short",
        "{{model}} {{outcome}}",
        window_s=3_600.0,
    ),
    Row(
        TRIALS,
        "Canaries that were taken back",
        "sum by (job, model) ("
        'increase(rankstream_canary_changes_total{${of}outcome="withdrawn"}[$window]))',
        "short",
        "{{model}}",
        Alert(
            "RankstreamGuardrail",
            "> 0",
            0,
            "warning",
            "a canary of {{ $labels.model }} was worse, and was taken back",
            "Nothing is left to do at once: all sessions are served the version of "
            "before. `rankstream snapshots history` has the figures, and which "
            "guardrail it was.",
            "docs/how-to/canary.md",
        ),
        3_600.0,
    ),
    Row(
        TRIALS,
        "Lists of experiments",
        "max by (job, experiment) (rankstream_experiment_lists{$of})",
        "short",
        "{{experiment}}",
    ),
    Row(
        TRIALS,
        "Preferences, with their intervals",
        "max by (job, experiment, ranker, against) ("
        "rankstream_experiment_preference{$of}) or "
        'label_replace(rankstream_experiment_preference_low{$of}, "end", "low", "", "")'
        " or label_replace("
        'rankstream_experiment_preference_high{$of}, "end", "high", "", "")',
        "short",
        "{{experiment}}: {{ranker}} over {{against}} {{end}}",
    ),
    Row(
        TRIALS,
        "Health of experiments: 2 is an alarm",
        "max by (job, experiment, check) (rankstream_experiment_health{$of})",
        "short",
        "{{experiment}} {{check}}",
        Alert(
            "RankstreamExperimentAlarm",
            "> 1",
            600,
            "warning",
            "the experiment {{ $labels.experiment }} has an alarm: {{ $labels.check }}",
            "Believe no verdict of it before the cause is found: `rankstream monitor` "
            "has the detail of each check.",
            "docs/monitor.md",
        ),
    ),
    Row(
        SERVE,
        "Requests a second, by status",
        "sum by (job, path, status) ("
        "rate(rankstream_serve_answers_total{$of}[$window]))",
        "reqps",
        "{{path}} {{status}}",
    ),
    Row(
        SERVE,
        "Share of answers above 499",
        share(
            'rankstream_serve_answers_total{${of}status=~"5.."}',
            "rankstream_serve_answers_total{$of}",
        ),
        "percentunit",
        "{{job}}",
        Alert(
            "RankstreamServeErrors",
            "> 0.01",
            300,
            "critical",
            "more than 1 % of the requests to {{ $labels.job }} fail",
            "Ask `/readyz` of the server. 503 is for what it waits for, or for room: "
            "then start another one.",
            "docs/http.md",
        ),
    ),
    Row(
        SERVE,
        "Answers, 99 of 100 take less",
        quantile("rankstream_serve_seconds", "job, path"),
        "s",
        "{{path}}",
    ),
    Row(
        SERVE,
        "Events that Kafka did not take",
        "sum by (job) (increase(rankstream_serve_events_failed_total{$of}[$window]))",
        "short",
        "{{job}}",
        Alert(
            "RankstreamServeEventsLost",
            "> 0",
            0,
            "critical",
            "Kafka did not take events that {{ $labels.job }} was given",
            "Clients were told, and may send again. Look at the brokers.",
            "docs/http.md",
        ),
        900.0,
    ),
    Row(
        PROCESSES,
        "Processors",
        "sum by (job, instance) ("
        'rate(process_cpu_seconds_total{${of}job=~"rankstream.*"}[$window]))',
        "short",
        "{{job}} {{instance}}",
    ),
    Row(
        PROCESSES,
        "Memory",
        "sum by (job, instance) ("
        'process_resident_memory_bytes{${of}job=~"rankstream.*"})',
        "bytes",
        "{{job}} {{instance}}",
    ),
)
