// Runs the threads of SQLite stores from the bundle of `ledger-thread-bundle.ts`, in threads that are
// used again. A new thread costs 58 ms of CPU time, most of it for Node's start and for the bundle.
// Only a thread whose store was closed is used again. A thread that a store kills ends, as in the
// program.
import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import threads, {
  MessageChannel,
  type MessagePort,
  type Transferable,
  type Worker,
  type WorkerOptions,
} from "node:worker_threads";

export const LEDGER_THREAD = new URL(
  "../../node_modules/.cache/tests/ledger-thread.cjs",
  import.meta.url,
).pathname;

/** A thread evaluates the bundle anew for each store, with the port and the data of that store. */
const HOST = `
const { readFileSync } = require("node:fs");
const { compileFunction } = require("node:vm");
const { parentPort, workerData: filename } = require("node:worker_threads");
const run = compileFunction(readFileSync(filename, "utf8"), ["require", "exports"], { filename });
parentPort.on("message", ({ port, workerData }) => {
  port.once("close", () => parentPort.postMessage("idle"));
  run((name) => (name === "node:worker_threads" ? { parentPort: port, workerData } : require(name)), {});
});`;

/** Idle threads of this process. */
const idle: Worker[] = [];
const MOST_IDLE = 4;

/** Stands in for a worker: the thread of one store. */
class StoreThread extends EventEmitter {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  #hasEnded = false;

  constructor(workerData: unknown) {
    super();
    const used = idle.pop();
    this.#worker =
      used ?? new Original(HOST, { eval: true, execArgv: [], workerData: LEDGER_THREAD });
    // Node announces new threads in the same way.
    if (used) process.nextTick(() => (process as EventEmitter).emit("worker", used));
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on("message", (message) => this.emit("message", message));
    // Who waits for the end of the store has to wait for the thread, too.
    port1.on("close", () => this.#worker.ref());
    this.#worker.on("message", this.#end).on("error", this.#fail).on("exit", this.#exit).unref();
    this.#worker.postMessage({ port: port2, workerData }, [port2]);
  }

  postMessage(message: unknown, transfer: readonly Transferable[] = []): void {
    this.#port.postMessage(message, transfer);
  }

  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }

  async terminate(): Promise<number> {
    if (this.#hasEnded) return 0;
    this.#worker.off("message", this.#end);
    return this.#worker.terminate();
  }

  readonly #fail = (error: Error): void => void this.emit("error", error);
  readonly #exit = (): void => {
    this.#hasEnded = true;
    this.#port.close();
    this.emit("exit");
  };

  /** The thread is idle, because the store closed its side of the channel. */
  readonly #end = (): void => {
    this.#hasEnded = true;
    this.#worker.off("message", this.#end).off("error", this.#fail).off("exit", this.#exit);
    this.#worker.unref();
    if (idle.length < MOST_IDLE) idle.push(this.#worker);
    else void this.#worker.terminate();
    this.emit("exit");
  };
}

const Original = threads.Worker;
class TestWorker extends Original {
  constructor(file: string | URL, options?: WorkerOptions) {
    if (String(file).endsWith("/stores/sqlite/threads/thread-entry.ts"))
      return new StoreThread(options?.workerData) as unknown as TestWorker;
    super(file, options);
  }
}

// The setup of each test file evaluates this module.
const done = Symbol.for("tollgate.test.ledger-thread");
if (!Reflect.has(globalThis, done)) {
  Reflect.set(globalThis, done, true);
  threads.Worker = TestWorker as typeof Worker;
  syncBuiltinESMExports();
}
