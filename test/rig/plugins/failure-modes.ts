// Failure modes of plugins, and their effect on the gateway: one table, which the rig tests and
// `docs/plugins/failures.md` shows.

/** The same processes serve all other requests as before. */
export const HELD = {
  throws: "throws",
  hangs: "never responds",
  garbage: "returns an invalid event",
  nothing: "returns nothing",
  million: "returns a million events",
  afterwards: "continues after its end",
  midway: "throws during a response",
  huge: "returns 80 MB in one event",
  heap: "leaks objects",
  buffers: "leaks buffers",
  pollutes: "changes `Object.prototype`",
  patches: "replaces `globalThis.fetch`",
  forks: "starts processes",
} as const;
export type Held = keyof typeof HELD;

/** Plugins that never give a complete response, and must be named for it. */
export const FAILS: ReadonlySet<Held> = new Set([
  "throws",
  "hangs",
  "garbage",
  "nothing",
  "midway",
  "pollutes",
]);

/** Each takes seconds, or much of the CPU. */
export const COSTLY: ReadonlySet<Held> = new Set(["million", "huge", "heap", "buffers", "hangs"]);

/** How it ends a process. */
export interface Ending {
  readonly what: string;
  /** Its own client receives a response, or is disconnected. */
  readonly client: "answered" | "cut";
  /** Reported reason of a worker's exit: a signal, or an exit code. */
  readonly worker: RegExp;
  /** The same for a single process. */
  readonly alone: RegExp;
  /** The log line with the reason. */
  readonly line: RegExp;
  /** It also names the blocking function and the request. */
  readonly at?: RegExp;
}

const UNCAUGHT = {
  client: "answered",
  // It finishes its open requests.
  worker: /^exit code 0$/,
  alone: /^exit code 1$/,
  line: /uncaught error|error that was not caught/,
} as const;
const STOOD = {
  client: "cut",
  worker: /^SIGKILL$/,
  alone: /^SIGKILL$/,
  line: /the event loop was blocked for 10 s/,
} as const;

/** The process ends: a worker is replaced, and a client that retries is served. */
export const DEADLY = {
  later: { what: "throws in a timer", ...UNCAUGHT },
  rejects: { what: "leaves a rejected promise unhandled", ...UNCAUGHT },
  exits: {
    what: "calls `process.exit`",
    client: "cut",
    worker: /^exit code 3$/,
    alone: /^exit code 3$/,
    line: /./,
  },
  loops: { what: "loops forever", ...STOOD, at: /^loops .*broken-provider/ },
  // A regular expression is no function, so its entry point is not always known.
  matches: { what: "runs a regular expression for hours", ...STOOD },
  exhausts: {
    what: "allocates all memory",
    client: "cut",
    worker: /^(SIGABRT|exit code 134|SIGKILL)$/,
    alone: /^(SIGABRT|exit code 134|SIGKILL)$/,
    line: /./,
  },
} as const satisfies Readonly<Record<string, Ending>>;
export type Deadly = keyof typeof DEADLY;

/** Hooks of middleware that fail every time. */
export const HOOKS = ["throws", "hangs", "garbage", "midway", "watching"] as const;
