// Checks of the hooks that receive the events of a response: `event`, which may change them, and
// `watch`, which only reads them.
import assert from "node:assert/strict";
import type { Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { Hooks } from "../../plugin/middleware.ts";
import { deepFreeze } from "../freeze.ts";
import { createEventGrammar } from "../event-grammar.ts";
import * as fakes from "../fakes.ts";

const SAMPLE_STREAM: readonly ModelEvent[] = deepFreeze([
  { type: "start", id: "up1" },
  { type: "open", index: 0, block: { type: "reasoning" } },
  { type: "delta", index: 0, text: "Hm." },
  { type: "close", index: 0 },
  { type: "open", index: 1, block: { type: "text" } },
  { type: "open", index: 2, block: { type: "call", id: "c1", name: "f", tool: "function" } },
  { type: "delta", index: 1, text: "Hello" },
  { type: "delta", index: 2, text: "{}" },
  { type: "close", index: 2 },
  { type: "delta", index: 1, text: " there" },
  { type: "close", index: 1 },
  { type: "usage", usage: { input: 3, output: 5 } },
  { type: "finish", reason: "tool_calls" },
]);

/** An event that a later version of the contract could add. The plugin must ignore it. */
const UNKNOWN_EVENT = deepFreeze({
  type: "rumour",
  index: 1,
  text: "They say.",
}) as unknown as ModelEvent;
const STREAM_WITH_UNKNOWN: readonly ModelEvent[] = SAMPLE_STREAM.flatMap((e) =>
  e.type === "delta" && e.text === "Hello" ? [e, UNKNOWN_EVENT] : [e],
);

/** Passes an event to a stage, and names the event in the error if the stage fails. */
function passEvent(stage: (e: ModelEvent) => unknown, e: ModelEvent): unknown {
  try {
    return stage(e);
  } catch (problem) {
    if (e !== UNKNOWN_EVENT) throw problem;
    throw new Error(
      "the hook fails on an event that it does not know: pass the event on or ignore it",
      {
        cause: problem,
      },
    );
  }
}

/** The events that an `event` stage emits must still form a valid response. */
export async function checkEventHook({ event: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const judge = createEventGrammar();
  let finished = false;
  let stopped = false;
  let newer = false;
  const done = Promise.withResolvers<void>();
  const stage = hook(
    fakes.call(),
    (e) => {
      assert.ok(!stopped, "no event may follow a stop");
      newer ||= (e.type as string) === "rumour";
      if ((e.type as string) !== "rumour") judge.event(e);
      if (e.type === "finish") finished = true;
      if (finished) done.resolve();
    },
    (fault) => {
      assert.ok(fault.kind && fault.message, "a stop must have a kind and a message");
      stopped = true;
      done.resolve();
    },
  );
  for (const e of STREAM_WITH_UNKNOWN)
    assert.equal(passEvent(stage, e), undefined, "a stage must be synchronous");
  const late = setTimeout(
    () => done.reject(new Error("The stage did not emit the finish event.")),
    5000,
  );
  await done.promise.finally(() => clearTimeout(late));
  if (stopped) return;
  judge.end();
  assert.ok(newer, "the stage drops an event that it does not know: pass the event on");
}

/** A `watch` hook must only read events. */
export function checkWatchHook({ watch: hook }: Hooks): void {
  if (!hook) return;
  let stopped: Fault | undefined;
  const see = hook(fakes.call(), (fault) => (stopped = fault));
  assert.ok(typeof see === "function", "watch must return a function that receives each event");
  for (const e of STREAM_WITH_UNKNOWN)
    assert.equal(passEvent(see, e), undefined, "a watcher must be synchronous and return nothing");
  if (stopped) assert.ok(stopped.kind && stopped.message, "a stop must have a kind and a message");
}
