// The watchdog thread. It counts its own ticks instead of clock time, so that a suspended machine
// or a stopped process does not count as blocked. Time during which the main thread waits for a CPU
// is also excluded, if the system reports it.
import { readFileSync, writeSync } from "node:fs";
import { Session, type Debugger } from "node:inspector";
import { parentPort, workerData } from "node:worker_threads";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { formatLogLine } from "../../lib/log/pretty-log.ts";
import { SHARED_CELLS, type WatchdogOptions } from "./event-loop-watchdog.ts";

const { cells, maxBlockedMs, intervalMs, ...of } = workerData as WatchdogOptions & {
  cells: Int32Array;
};

/**
 * If a tick is later than this multiple of the interval, the delay was not caused by the event loop
 * alone.
 */
const LATE_FACTOR = 2;
/** How long the event loop may take to report its stack, in milliseconds. */
const STACK_TIMEOUT_MS = 8_000;
const MAX_FRAMES = 12;
/** On Linux: run time and wait time of the main thread, in nanoseconds. */
const SCHEDSTAT_PATH = `/proc/self/task/${process.pid}/schedstat`;

let lastHeartbeats = -1;
/** Milliseconds, counted by this thread's ticks. */
let blockedMs = 0;
let lastStarvedMs = readStarvedMs();
let lastTickAt = performance.now();
let isEnding = false;

setInterval(() => {
  if (isEnding) return;
  const now = performance.now();
  const late = now - lastTickAt > LATE_FACTOR * intervalMs;
  lastTickAt = now;
  const left = Atomics.load(cells, SHARED_CELLS.secondsLeft);
  if (left > 0 && Atomics.sub(cells, SHARED_CELLS.secondsLeft, 1) === 1)
    return endProcess("the process did not exit in time");
  const beat = Atomics.load(cells, SHARED_CELLS.heartbeats);
  const moved =
    beat !== lastHeartbeats || late || Atomics.load(cells, SHARED_CELLS.isDebugged) === 1;
  lastHeartbeats = beat;
  const waited = readStarvedMs() - lastStarvedMs;
  lastStarvedMs += waited;
  blockedMs = moved ? 0 : Math.max(0, blockedMs + intervalMs - waited);
  if (blockedMs >= maxBlockedMs)
    endProcess(`the event loop was blocked for ${maxBlockedMs / 1000} s`);
}, intervalMs);
parentPort?.postMessage("loaded");

function readStarvedMs(): number {
  try {
    return Number(readFileSync(SCHEDSTAT_PATH, "utf8").split(" ")[1]) / 1e6 || 0;
  } catch {
    return 0;
  }
}

function endProcess(why: string): void {
  isEnding = true;
  const session = new Session();
  const last = (at: readonly string[], requests: readonly string[]) => {
    writeLogLine({ at, requests }, `${why}, process ended, stack in \`at\``);
    process.kill(process.pid, "SIGKILL");
  };
  // During a system call, the main thread cannot report its stack.
  setTimeout(() => last([], []), STACK_TIMEOUT_MS);
  session.connectToMainThread();
  /**
   * URLs by script ID. A stack frame does not always contain the URL of code that was loaded at run
   * time.
   */
  const files = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params }) => void files.set(params.scriptId, params.url));
  session.on("Debugger.paused", ({ params }) => {
    const frames = params.callFrames.slice(0, MAX_FRAMES);
    const requests = new Set<string>();
    let pending = frames.length;
    for (const { callFrameId } of frames)
      session.post(
        "Debugger.evaluateOnCallFrame",
        { callFrameId, expression: REQUEST_ID_EXPRESSION, returnByValue: true, silent: true },
        (_error, response) => {
          const id: unknown = response?.result.value;
          if (typeof id === "string") requests.add(id);
          if (--pending === 0)
            last(
              frames.map((frame) => formatFrame(frame, files)),
              [...requests],
            );
        },
      );
    if (pending === 0) last([], []);
  });
  session.post("Debugger.enable");
  session.post("Debugger.pause");
}

/**
 * Finds request IDs by the variable names that the pipeline uses: `x` for an exchange, `call` for a
 * call.
 */
const REQUEST_ID_EXPRESSION = `(() => {
  const of = (it) => it?.state?.connection ? it.id : it?.exchange?.state?.connection ? it.attemptId + " " + it.id : undefined;
  return (typeof x === "object" ? of(x) : undefined) ?? (typeof call === "object" ? of(call) : undefined) ?? of(this);
})()`;

function formatFrame(frame: Debugger.CallFrame, files: ReadonlyMap<string, string>): string {
  const { functionName, url, location } = frame;
  const file = (url || (files.get(location.scriptId) ?? ""))
    .replace(/^.*\/(?=(?:src|plugins|dist|node_modules)\/)/, "")
    .replace(/^file:\/\//, "");
  return `${functionName || "(anonymous)"} ${file}:${location.lineNumber + 1}`;
}

/** Writes a line in the log's format. The log's own writer is in the blocked thread. */
function writeLogLine(fields: object, msg: string): void {
  const line = JSON.stringify({
    level: "error",
    time: new Date(wallClock()).toISOString(),
    pid: process.pid,
    ...fields,
    msg,
  });
  try {
    writeSync(1, `${of.isPretty ? formatLogLine(line) : line}\n`);
  } catch {
    // The reader of the log has ended. The process is killed anyway.
  }
}
