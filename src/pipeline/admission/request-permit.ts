// What one request takes up of its process while it is here: a turn, a place among those of its key, and bytes. All are free
// again whichever way it ends.
import { createFault } from "../../model/error.ts";
import { createBoundExceeded } from "../../model/bound-exceeded.ts";
import { HIDDEN_LIMIT_MESSAGE } from "../accounts/accounts.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { AdmissionQueue } from "./admission-queue.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import type { ConcurrencyCounter } from "./concurrency-counter.ts";

/** Reading a body and reserving a call take less than this. */
const RETRY_AFTER_MS = 1_000;
const RETRY_SOON = { retryAfterMs: RETRY_AFTER_MS } as const;

/** How many bytes may be held and how many requests may be inside at once, in the whole process. */
interface ProcessLimits {
  readonly admissionQueue: AdmissionQueue;
  readonly memoryBudget: MemoryBudget;
  readonly concurrencyCounter: ConcurrencyCounter;
}

export class RequestPermit {
  #key = "";
  readonly #limits: ProcessLimits;
  #reservedBytes = 0;
  #slots: string[] | undefined;
  #isAdmitted = false;
  #isPipelineDone = false;
  #isResponseDone = false;

  constructor(bounds: ProcessLimits) {
    this.#limits = bounds;
  }

  /** What was held before the key was known counts for no key. */
  setKey(key: string): void {
    if (this.#reservedBytes === 0) this.#key = key;
  }

  /** Before anything is asked of it. Throws where the process can take nothing. */
  assertNotOverloaded(): void {
    this.#limits.admissionQueue.assertNotOverloaded();
  }

  /** Its turn, now or when the promise resolves. Throws, or rejects, where there are too many. */
  acquire(): Promise<void> | undefined {
    const queued = this.#limits.admissionQueue.acquire(this.#key);
    if (queued) return queued.then(() => void (this.#isAdmitted = true));
    this.#isAdmitted = true;
    return undefined;
  }

  /** How many bytes it holds. */
  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  acquireSlot(scope: string, most: number, isHidden = false): void {
    if (!this.#limits.concurrencyCounter.tryAcquire(scope, most))
      throw attributeFault(
        createFault(
          "rate_limited",
          isHidden ? `${HIDDEN_LIMIT_MESSAGE}.` : `More than ${most} requests at once (${scope}).`,
          {
            code: "rate_limit_exceeded",
            ...RETRY_SOON,
          },
        ),
        "gateway",
      );
    (this.#slots ??= []).push(scope);
  }

  /** Gives its places back: its call is counted by the ledger now, or it is over. */
  releaseSlots(): void {
    if (!this.#slots) return;
    for (const scope of this.#slots) this.#limits.concurrencyCounter.release(scope);
    this.#slots = undefined;
  }

  /** Asks for room before the bytes are there. */
  reserveMemory(bytes: number): void {
    if (!this.#limits.memoryBudget.tryReserve(this.#key, bytes, this.#reservedBytes))
      throw attributeFault(createBoundExceeded("inFlight", undefined, RETRY_SOON), "gateway");
    this.#reservedBytes += bytes;
  }

  /** Its walk is over. What it holds is free when its answer has left too. */
  onPipelineEnd(): void {
    this.releaseSlots();
    if (this.#isAdmitted) this.#limits.admissionQueue.release(this.#key);
    this.#isPipelineDone = true;
    if (this.#isResponseDone) this.#releaseMemory();
  }

  onResponseEnd(): void {
    this.#isResponseDone = true;
    if (this.#isPipelineDone) this.#releaseMemory();
  }

  #releaseMemory(): void {
    if (this.#reservedBytes > 0) this.#limits.memoryBudget.release(this.#key, this.#reservedBytes);
    this.#reservedBytes = 0;
  }
}
