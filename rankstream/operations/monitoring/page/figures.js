// Numbers and times as people read them.

export const whole = new Intl.NumberFormat("en");

export const percent = (share, digits = 1) => Number((100 * share).toFixed(digits)) + " %";

export const fixed = (value, digits) => value === null ? null : value.toFixed(digits);

export function signed(value, digits = 4) {
  return value === null ? null : (value > 0 ? "+" : "") + value.toFixed(digits);
}

export function interval(ends, told) {
  return ends === null || ends[0] === null ? null : told(ends[0]) + " – " + told(ends[1]);
}

export function moment(ms) {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

// Ages go by the clock of the monitor, which may be another machine's.
let aheadMs = 0;

export function setClock(nowMs) { aheadMs = nowMs - Date.now(); }

export const now = () => Date.now() + aheadMs;

export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return seconds + " s";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min";
  return whole.format(Math.floor(seconds / 3600)) + " h";
}

// Event time may be ahead of any clock.
export function age(createdMs) {
  if (createdMs === 0) return "from the start";
  const passedMs = now() - createdMs;
  if (passedMs <= -1000) return "its event time " + duration(-passedMs) + " ahead";
  return duration(passedMs) + " old in event time";
}
