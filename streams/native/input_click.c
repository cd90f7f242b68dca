/* Click events: what users did with an item of a list. */
#include "input_events.h"

_Static_assert(N_CLICK_EVENT_FIELDS == 8, "each is read here");

/* What is read of an event before anything is written. */
struct action {
    struct text id, item, action, event_id;
    int64_t position, at_ms;
};

/* A text, or what stands for it where there is none. */
static struct text text_or(const struct input *event, int field, const char *packed) {
    struct span value = event->fields[field];
    struct span other = {(const uint8_t *)packed, (int64_t)strlen(packed)};
    return text_in(value.n < 0 ? other : value);
}

static bool read_action(const struct input *event, const struct input_rules *rules,
                        struct action *click) {
    int64_t schema = EVENT_SCHEMA;
    struct span position = event->fields[CLICK_EVENT_POSITION];
    struct span version = event->fields[CLICK_EVENT_SCHEMA];
    click->position = 0;
    click->id = text_in(event->fields[CLICK_EVENT_IMPRESSION_ID]);
    click->item = text_or(event, CLICK_EVENT_ITEM_ID, "\xA0");
    click->action = text_or(event, CLICK_EVENT_ACTION, "\xA5" "click");
    click->event_id = text_or(event, CLICK_EVENT_EVENT_ID, "\xA0");
    if ((version.n >= 0 && !number_of(version, &schema)) || schema != EVENT_SCHEMA)
        return false;
    if (position.n < 0 ? click->item.span.n <= 0
                       : !number_of(position, &click->position) ||
                             click->position < 1 ||
                             click->position > rules->most_documents)
        return false;
    return click->id.span.n > 0 && click->item.span.n >= 0 && click->action.span.n > 0 &&
           click->event_id.span.n >= 0 &&
           is_within(click->id.span, MAX_ID_CHARACTERS) &&
           is_within(click->item.span, MAX_ID_CHARACTERS) &&
           is_within(click->action.span, MAX_ID_CHARACTERS) &&
           is_within(click->event_id.span, MAX_ID_CHARACTERS) &&
           number_of(event->fields[CLICK_EVENT_AT_MS], &click->at_ms) &&
           is_plausible(click->at_ms, event->appended_ms, rules->ahead_ms);
}

/* Where it goes, to its query, else where its impression's id says; IS_PLAIN where it goes
 * anywhere. */
static int64_t read_route(const struct input *event, struct span id,
                          const struct input_rules *rules, uint64_t *route) {
    uint8_t room[MAX_QUERY_CHARACTERS];
    struct span value = event->fields[CLICK_EVENT_QUERY_ID];
    struct span query = normalised(text_in(value).span, rules, room);
    if (query.n == FOREIGN)
        return IS_FOREIGN;
    if (query.n <= 0)
        return route_in(id, route) ? IS_PLAIN : IS_ODD;
    *route = route_of(query);
    return IS_PLAIN;
}

static struct part part_of(struct text text) {
    return (struct part){text.span.bytes, text.span.n};
}

static void put_own_identity(struct canonical *out, const struct action *click) {
    uint8_t position[20], at_ms[20];
    if (click->event_id.span.n > 0) {
        struct part named[] = {{(const uint8_t *)"e", 1}, part_of(click->event_id)};
        put_identity(out, named, 2);
        return;
    }
    struct part parts[] = {
        {(const uint8_t *)"c", 1},
        part_of(click->id),
        part_of(click->item),
        {position, put_decimal(position, click->position)},
        part_of(click->action),
        {at_ms, put_decimal(at_ms, click->at_ms)},
    };
    put_identity(out, parts, 6);
}

int64_t put_click(struct canonical *out, const struct input *event,
                  const struct input_rules *rules, struct span raw,
                  const int64_t *origin, int64_t *outcome) {
    struct action click;
    uint64_t route;
    if (raw.n > MAX_CLICK_BYTES || !read_action(event, rules, &click))
        return IS_ODD;
    int64_t found = read_route(event, click.id.span, rules, &route);
    if (found != IS_PLAIN)
        return found;
    struct part named[] = {{(const uint8_t *)"i", 1}, part_of(click.id)};
    out->at = put_number(put_array(out->at, N_CLICK_FIELDS), CLICK);
    put_own_identity(out, &click);
    put_identity(out, named, 2);
    put_text(out, click.item);
    out->at = put_number(out->at, click.position);
    out->at = put_number(out->at, click.at_ms);
    put_text(out, click.action);
    out->at = put_binary_head(out->at, raw.n);
    out->at = put_bytes(out->at, raw.bytes, (size_t)raw.n);
    out->at = put_bytes(out->at, rules->origin, (size_t)rules->n_origin);
    out->at = put_number(put_number(out->at, origin[0]), origin[1]);
    outcome[OUTCOME_PARTITION] = (int64_t)(route % (uint64_t)rules->n_partitions);
    outcome[OUTCOME_AT_MS] = click.at_ms;
    outcome[OUTCOME_SIZE] = 256 + raw.n + 4 * (characters_of(click.item.span) +
                                               characters_of(click.action.span));
    return IS_PLAIN;
}
