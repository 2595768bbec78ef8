// Timeouts for the phases of a call. The most specific setting is used: the provider's for that
// class, the provider's, the gateway's for that class, the gateway's.
import { parseDuration } from "../../lib/time/units.ts";
import { isMapping } from "../source/config-tree.ts";
import type { CallTimes, Timeouts } from "../gateway-config.ts";

const TIME_KEYS = { first_byte: "firstByteMs", idle: "idleMs", total: "totalMs" } as const;

/** Base of the gateway's own timeouts, for which every key has a default. */
const NO_TIMEOUTS: Partial<Timeouts> & Pick<Timeouts, "classes"> = { classes: new Map() };

/**
 * Converts timeouts.
 * @param defaults The gateway's timeouts, for those of a provider.
 */
export function toTimeouts(raw: any, defaults?: Timeouts): Timeouts {
  const own = toCallTimes(raw);
  const { connectMs, classes: of, ...usual } = defaults ?? NO_TIMEOUTS;
  const plain = { ...usual, ...own } as CallTimes;
  const classes = new Map<string, CallTimes>();
  for (const [name, times] of of)
    classes.set(name, { ...plain, ...differingTimes(times, usual as CallTimes), ...own });
  for (const [name, times] of Object.entries(isMapping(raw?.classes) ? raw.classes : {}))
    classes.set(name, { ...(classes.get(name) ?? plain), ...toCallTimes(times) });
  return {
    connectMs: raw?.connect === undefined ? connectMs! : parseDuration(raw.connect)!,
    ...plain,
    classes,
  };
}

function toCallTimes(raw: any): Partial<CallTimes> {
  const own: { -readonly [K in keyof CallTimes]?: number } = {};
  for (const [key, name] of Object.entries(TIME_KEYS))
    if (raw?.[key] !== undefined) own[name] = parseDuration(raw[key])!;
  return own;
}

/** Returns the timeouts of a class that differ from the common ones. */
const differingTimes = (times: CallTimes, plain: CallTimes): Partial<CallTimes> =>
  Object.fromEntries(
    Object.values(TIME_KEYS)
      .filter((name) => times[name] !== plain[name])
      .map((name) => [name, times[name]]),
  );
