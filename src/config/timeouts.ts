// How long each part of a call may take. Four places may say it; the nearest to the call counts: the provider's for that class,
// the provider's, the gateway's for that class, the gateway's.
import { parseDuration, sayDuration } from "../lib/duration.ts";
import { isMapping, type Mapping } from "./tree.ts";
import type { CallTimes, Timeouts } from "./types.ts";

const KEYS = { first_byte: "firstByteMs", idle: "idleMs", total: "totalMs" } as const;

/** For the gateway's own, whose every key has a default. */
const NONE: Partial<Timeouts> & Pick<Timeouts, "classes"> = { classes: new Map() };

/** `otherwise`: the gateway's, for a provider's own. */
export function timeoutsOf(said: any, otherwise?: Timeouts): Timeouts {
  const own = timesOf(said);
  const { connectMs, classes: of, ...usual } = otherwise ?? NONE;
  const plain = { ...usual, ...own } as CallTimes;
  const classes = new Map<string, CallTimes>();
  for (const [name, times] of of)
    classes.set(name, { ...plain, ...differing(times, usual as CallTimes), ...own });
  for (const [name, times] of Object.entries(isMapping(said?.classes) ? said.classes : {}))
    classes.set(name, { ...(classes.get(name) ?? plain), ...timesOf(times) });
  return {
    connectMs: said?.connect === undefined ? connectMs! : parseDuration(said.connect)!,
    ...plain,
    classes,
  };
}

function timesOf(said: any): Partial<CallTimes> {
  const own: { -readonly [K in keyof CallTimes]?: number } = {};
  for (const [key, name] of Object.entries(KEYS))
    if (said?.[key] !== undefined) own[name] = parseDuration(said[key])!;
  return own;
}

/** As gateway.yaml says it; of a class what is not said by all alike. */
export const timeoutsView = (times: Timeouts): Mapping => ({
  connect: sayDuration(times.connectMs),
  ...view(times),
  classes:
    times.classes.size === 0
      ? undefined
      : Object.fromEntries(
          [...times.classes].map(([name, each]) => [name, view(differing(each, times))]),
        ),
});

const view = (times: Partial<CallTimes>): Mapping =>
  Object.fromEntries(
    Object.entries(KEYS)
      .filter(([, name]) => times[name] !== undefined)
      .map(([key, name]) => [key, sayDuration(times[name]!)]),
  );

/** What it says otherwise. */
const differing = (times: CallTimes, plain: CallTimes): Partial<CallTimes> =>
  Object.fromEntries(
    Object.values(KEYS)
      .filter((name) => times[name] !== plain[name])
      .map((name) => [name, times[name]]),
  );
