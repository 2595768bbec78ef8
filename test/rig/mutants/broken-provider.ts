// A native provider that is broken as its options state.
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { defineProvider, type ModelEvent } from "tollgate/plugin";

const kept: unknown[] = [];

const START: ModelEvent = { type: "start" };
const OPEN: ModelEvent = { type: "open", index: 0, block: { type: "text" } };
const word = (text: string): ModelEvent => ({ type: "delta", index: 0, text });
const CLOSE: ModelEvent = { type: "close", index: 0 };
const FINISH: ModelEvent = { type: "finish", reason: "stop" };
const END: readonly ModelEvent[] = [
  CLOSE,
  { type: "usage", usage: { input: 1, output: 1 } },
  FINISH,
];

async function* said(...words: readonly string[]): AsyncGenerator<ModelEvent> {
  yield START;
  yield OPEN;
  for (const text of words) yield word(text);
  yield* END;
}

type Run = () => AsyncIterable<ModelEvent>;

/** Defect of each. All but the last six leave the process intact. */
const WAYS: { readonly [how: string]: Run } = {
  throws() {
    throw new TypeError("a mistake in a plugin");
  },
  async *hangs() {
    yield START;
    await new Promise(() => {});
  },
  async *garbage() {
    yield START;
    yield { type: "delta", index: "x", text: null } as never;
  },
  nothing: () => undefined as never,
  async *million() {
    yield START;
    yield OPEN;
    for (let i = 0; i < 1_000_000; i++) yield word("x");
    yield* END;
  },
  async *afterwards() {
    yield* said("Hello");
    for (let i = 0; i < 10_000; i++) yield word("more");
  },
  async *midway() {
    yield START;
    yield OPEN;
    yield word("Hello");
    await sleep(5);
    throw new TypeError("a mistake in a plugin");
  },
  huge: () => said("x".repeat(80_000_000)),
  heap() {
    kept.push(Array.from({ length: 200_000 }, (_, i) => ({ i })));
    return said("Hello");
  },
  buffers() {
    kept.push(Buffer.alloc(10_000_000, 1));
    return said("Hello");
  },
  pollutes() {
    Object.assign(Object.prototype, { polluted: "by a plugin" });
    return said("Hello");
  },
  patches() {
    globalThis.fetch = () => {
      throw new TypeError("a plugin's own fetch");
    };
    return said("Hello");
  },
  forks() {
    spawn("sleep", ["20"], { stdio: "ignore" });
    return said("Hello");
  },
  later() {
    setTimeout(() => {
      throw new TypeError("a mistake in a timer");
    }, 5);
    return said("Hello");
  },
  rejects() {
    void Promise.reject(new TypeError("a promise that nothing waits for"));
    return said("Hello");
  },
  exits: () => process.exit(3),
  loops: function loops() {
    for (;;);
  },
  matches() {
    /^(a+)+$/.test(`${"a".repeat(60)}!`);
    return said("Hello");
  },
  exhausts() {
    for (;;) kept.push(Array.from({ length: 100_000 }, (_, i) => ({ i })));
  },
};

export default defineProvider({
  api: 1,
  name: "broken-provider",
  summary: "Broken in the way that its options say",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["how"],
    properties: { how: { enum: Object.keys(WAYS), description: "What it does wrong" } },
  },
  setup: ({ how }) => ({
    endpoints: [{ operation: "chat", run: () => WAYS[how as string]!() }],
  }),
});
