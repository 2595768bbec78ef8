// In which ways plugins are broken here, and what becomes of the gateway for each: one table, which the rig holds the gateway to and
// `docs/plugins/failures.md` shows.

/** The same processes serve all others as ever. */
export const HELD = {
  throws: "throws",
  hangs: "never answers",
  garbage: "gives what is no event",
  nothing: "gives nothing",
  million: "gives a million events",
  afterwards: "goes on after its end",
  midway: "throws in the middle of an answer",
  huge: "gives 80 MB in one event",
  heap: "keeps objects",
  buffers: "keeps buffers",
  pollutes: "changes `Object.prototype`",
  patches: "replaces `globalThis.fetch`",
  forks: "starts processes",
} as const;
export type Held = keyof typeof HELD;

/** Of those the ones that never give a whole answer, and have to be named for it. */
export const FAILS: ReadonlySet<Held> = new Set([
  "throws",
  "hangs",
  "garbage",
  "nothing",
  "midway",
  "pollutes",
]);

/** Each of them takes seconds, or a good part of the processor. */
export const COSTLY: ReadonlySet<Held> = new Set(["million", "huge", "heap", "buffers", "hangs"]);

/** How a process ends of it. */
export interface Ending {
  readonly what: string;
  /** Its own client has its answer, or is cut off. */
  readonly client: "answered" | "cut";
  /** What is said of a worker's end: a signal, or an exit code. */
  readonly worker: RegExp;
  /** The same of a process that is alone. */
  readonly alone: RegExp;
  /** The line that says why. */
  readonly line: RegExp;
  /** It says too in which function it stood, and for which request. */
  readonly at?: RegExp;
}

const UNCAUGHT = {
  client: "answered",
  // It finishes what it has.
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

/** The process ends of them: a worker is made anew, and a client that asks again is served. */
export const DEADLY = {
  later: { what: "throws in a timer", ...UNCAUGHT },
  rejects: { what: "lets a promise fail that nothing waits for", ...UNCAUGHT },
  exits: {
    what: "calls `process.exit`",
    client: "cut",
    worker: /^exit code 3$/,
    alone: /^exit code 3$/,
    line: /./,
  },
  loops: { what: "loops for good", ...STOOD, at: /^loops .*broken-provider/ },
  // A pattern is not a function of its own: where it was entered is not always told.
  matches: { what: "tries a pattern for hours", ...STOOD },
  exhausts: {
    what: "keeps memory until there is none",
    client: "cut",
    worker: /^(SIGABRT|exit code 134|SIGKILL)$/,
    alone: /^(SIGABRT|exit code 134|SIGKILL)$/,
    line: /./,
  },
} as const satisfies Readonly<Record<string, Ending>>;
export type Deadly = keyof typeof DEADLY;

/** Hooks of middlewares, of which each fails every time. */
export const HOOKS = ["throws", "hangs", "garbage", "midway", "watching"] as const;
