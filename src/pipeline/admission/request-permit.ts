// Contains all resources of one request in its process: an admission slot, concurrency slots of its
// key, and bytes of memory. All resources are released, however the request ends.
import { createFault } from "../../model/error.ts";
import { createBoundExceeded } from "../../model/bound-exceeded.ts";
import { HIDDEN_LIMIT_MESSAGE } from "../accounts/accounts.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { AdmissionQueue } from "./admission-queue.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/**
 * Retry delay sent to the client, in milliseconds. Reading a body and reserving a call take less
 * than this.
 */
const RETRY_AFTER_MS = 1_000;
const RETRY_SOON = { retryAfterMs: RETRY_AFTER_MS } as const;

/** The limits of the whole process: bytes, admitted requests, and concurrent requests per scope. */
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

  /**
   * Sets the key that the reserved bytes count for. Bytes reserved before the key was known count
   * for no key.
   */
  setKey(key: string): void {
    if (this.#reservedBytes === 0) this.#key = key;
  }

  /** Throws if the process can take no more work. Called before anything of the request is read. */
  assertNotOverloaded(): void {
    this.#limits.admissionQueue.assertNotOverloaded();
  }

  /**
   * Waits for admission. Returns a promise if the request must wait. Throws or rejects if there are
   * too many requests.
   */
  acquire(): Promise<void> | undefined {
    const queued = this.#limits.admissionQueue.acquire(this.#key);
    if (queued) return queued.then(() => void (this.#isAdmitted = true));
    this.#isAdmitted = true;
    return undefined;
  }

  /** The number of bytes that the request has reserved. */
  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  acquireSlot(scope: string, most: number, isHidden = false): void {
    if (!this.#limits.concurrencyCounter.tryAcquire(scope, most))
      throw attributeFault(
        createFault(
          "rate_limited",
          isHidden
            ? `${HIDDEN_LIMIT_MESSAGE}.`
            : `More than ${most} concurrent requests (${scope}).`,
          {
            code: "rate_limit_exceeded",
            ...RETRY_SOON,
          },
        ),
        "gateway",
      );
    (this.#slots ??= []).push(scope);
  }

  /**
   * Releases the concurrency slots. Called when the ledger counts the call, or when the request
   * ends.
   */
  releaseSlots(): void {
    if (!this.#slots) return;
    for (const scope of this.#slots) this.#limits.concurrencyCounter.release(scope);
    this.#slots = undefined;
  }

  /** Reserves memory before the bytes arrive. */
  reserveMemory(bytes: number): void {
    if (!this.#limits.memoryBudget.tryReserve(this.#key, bytes, this.#reservedBytes))
      throw attributeFault(createBoundExceeded("inFlight", undefined, RETRY_SOON), "gateway");
    this.#reservedBytes += bytes;
  }

  /**
   * Releases everything but memory. Called when only the response is left to be sent, which the
   * frontend produces itself.
   */
  releaseWork(): void {
    this.releaseSlots();
    if (this.#isAdmitted) this.#limits.admissionQueue.release(this.#key);
    this.#isAdmitted = false;
  }

  /**
   * Called when the request's pipeline ends. Memory is released when the response has also been
   * sent.
   */
  onPipelineEnd(): void {
    this.releaseWork();
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

/**
 * Counts concurrent requests in this process, from the moment their headers are read. Limits of the
 * store apply only when a call is reserved, after the body has been read.
 */
export class ConcurrencyCounter {
  readonly #counts = new Map<string, number>();

  /** Takes one slot of the scope. Returns false if `max` slots are taken. */
  tryAcquire(scope: string, max: number): boolean {
    const count = this.#counts.get(scope) ?? 0;
    if (count >= max) return false;
    this.#counts.set(scope, count + 1);
    return true;
  }

  release(scope: string): void {
    const count = (this.#counts.get(scope) ?? 0) - 1;
    if (count > 0) this.#counts.set(scope, count);
    else this.#counts.delete(scope);
  }
}
