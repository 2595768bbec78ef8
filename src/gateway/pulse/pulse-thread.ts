// The thread that watches the loop. It counts its own turns, not the clock: a machine that slept and a process that was held
// are no loop that stands. Nor is one that waits for a processor: where the system tells how long it did, that time does not count.
import { readFileSync, writeSync } from "node:fs";
import { Session, type Debugger } from "node:inspector";
import { workerData } from "node:worker_threads";
import { wallClock } from "../../lib/wall-clock.ts";
import { pretty } from "../../lib/pretty.ts";
import { CELLS, type PulseOptions } from "./pulse.ts";

const { cells, standMs, everyMs, ...of } = workerData as PulseOptions & { cells: Int32Array };

/** A turn that comes later than this was not missed by the loop alone. */
const LATE = 2;
/** For the loop to say where it is. */
const ASK_MS = 8_000;
const FRAMES = 12;
/** Linux: what the main thread has run, and what it has waited to run, in nanoseconds. */
const SCHEDULED = `/proc/self/task/${process.pid}/schedstat`;

let beats = -1;
/** In milliseconds of its own. */
let stood = 0;
let starved = starvedMs();
let turned = performance.now();
let over = false;

setInterval(() => {
  if (over) return;
  const now = performance.now();
  const late = now - turned > LATE * everyMs;
  turned = now;
  const left = Atomics.load(cells, CELLS.left);
  if (left > 0 && Atomics.sub(cells, CELLS.left, 1) === 1)
    return end("it did not end in the time it had");
  const beat = Atomics.load(cells, CELLS.beats);
  const moved = beat !== beats || late || Atomics.load(cells, CELLS.paused) === 1;
  beats = beat;
  const waited = starvedMs() - starved;
  starved += waited;
  stood = moved ? 0 : Math.max(0, stood + everyMs - waited);
  if (stood >= standMs) end(`the process stood for ${standMs / 1000} s`);
}, everyMs);

function starvedMs(): number {
  try {
    return Number(readFileSync(SCHEDULED, "utf8").split(" ")[1]) / 1e6 || 0;
  } catch {
    return 0;
  }
}

function end(why: string): void {
  over = true;
  const session = new Session();
  const last = (at: readonly string[], requests: readonly string[]) => {
    say({ at, requests }, `${why}: it is ended, and this is where it was`);
    process.kill(process.pid, "SIGKILL");
  };
  // In a call to the system it cannot say anything.
  setTimeout(() => last([], []), ASK_MS);
  session.connectToMainThread();
  /** A frame does not always say it of code that was loaded at run time. */
  const files = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params }) => void files.set(params.scriptId, params.url));
  session.on("Debugger.paused", ({ params }) => {
    const frames = params.callFrames.slice(0, FRAMES);
    const requests = new Set<string>();
    let asked = frames.length;
    for (const { callFrameId } of frames)
      session.post(
        "Debugger.evaluateOnCallFrame",
        { callFrameId, expression: WHOSE, returnByValue: true, silent: true },
        (_error, told) => {
          const id: unknown = told?.result.value;
          if (typeof id === "string") requests.add(id);
          if (--asked === 0)
            last(
              frames.map((frame) => place(frame, files)),
              [...requests],
            );
        },
      );
    if (asked === 0) last([], []);
  });
  session.post("Debugger.enable");
  session.post("Debugger.pause");
}

/** By the names that the walk gives them: an exchange, a call of one. */
const WHOSE = `(() => {
  const of = (it) => it?.["~"] ? it.id : it?.exchange?.["~"] ? it.attempt + " " + it.id : undefined;
  return (typeof x === "object" ? of(x) : undefined) ?? (typeof call === "object" ? of(call) : undefined) ?? of(this);
})()`;

function place(frame: Debugger.CallFrame, files: ReadonlyMap<string, string>): string {
  const { functionName, url, location } = frame;
  const file = (url || (files.get(location.scriptId) ?? ""))
    .replace(/^.*\/(?=(?:src|plugins|dist|node_modules)\/)/, "")
    .replace(/^file:\/\//, "");
  return `${functionName || "(anonymous)"} ${file}:${location.lineNumber + 1}`;
}

/** As the log writes it; its own writer is on the other side. */
function say(fields: object, msg: string): void {
  const line = JSON.stringify({
    level: "error",
    time: new Date(wallClock()).toISOString(),
    pid: process.pid,
    ...fields,
    msg,
  });
  try {
    writeSync(1, `${of.pretty ? pretty(line) : line}\n`);
  } catch {
    // Its reader is gone: it ends all the same.
  }
}
