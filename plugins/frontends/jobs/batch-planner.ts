// Plans the lines of a new batch: each line is checked as a request, and encoded for the provider that
// will run it. The encoded lines are stored, so that exactly what was priced is sent.
import { createHash } from "node:crypto";
import {
  fail,
  getFault,
  type BatchLimits,
  type BatchTarget,
  type ErrorKind,
  type Fault,
  type JobLines,
  type Limit,
  type Opt,
  type Price,
  type RequestHead,
} from "tollgate/plugin";
import type { LineFile, ProviderBatch } from "./batch-record.ts";
import { LineWriter } from "./line-files.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

/** Maximum number of provider batches. The record of the batch has to fit in 64 KiB. */
const MAX_BATCHES = 12;
/** Bytes besides the body that a provider may count for each line. */
const LINE_OVERHEAD_BYTES = 256;
const MAX_CUSTOM_ID_BYTES = 512;
/** Lines whose numbers an error contains. */
const MAX_LISTED_LINES = 20;
/** Maximum number of characters of an ID that an error quotes. */
const MAX_QUOTED_ID = 64;
/** Maximum lengths in the error of a line, in characters. It may quote the client's request. */
const MAX_FAULT = { message: 2_000, name: 256 };
/** Time in milliseconds after which other requests get a turn. */
const TURN_MS = 5;

/** Errors of one line. Any other error ends the creation of the batch. */
const LINE_ERRORS: ReadonlySet<ErrorKind> = new Set([
  "invalid",
  "context_length",
  "content_policy",
  "unsupported",
  "forbidden",
  "not_found",
  "too_large",
  "mismatch",
]);

/** Limits of a part whose lines the gateway sends itself. */
const DIRECT_LIMITS: BatchLimits = { lines: Number.MAX_SAFE_INTEGER, bytes: 2 ** 40 };

type Claim = Limit & { take: bigint };

/** The plan of a batch. */
export interface BatchPlan {
  readonly lines: LineFile;
  readonly batches: readonly ProviderBatch[];
  readonly claims: readonly Claim[];
  /** Highest cost of all lines. `null` if the cost of a line is not known. */
  readonly holdNano: bigint | null;
  readonly total: number;
  readonly failed: number;
  /** Path of the key's account. */
  readonly account: string | undefined;
  readonly labels: Readonly<Record<string, string | undefined>>;
}

/** First text line of a line in the file of lines. The body follows, and is empty after an error. */
export interface LineHeader {
  /** Number of the line, from 1 without gaps. */
  readonly n: number;
  readonly id: string;
  /** Index of its provider batch. */
  readonly batch?: number;
  readonly holdNano?: string | null;
  /** Price of this line and of the following lines of its provider batch, if it is another one. */
  readonly price?: Price | null;
  /** Error of an invalid line. */
  readonly fault?: Pick<Fault, "kind" | "message" | "code" | "param">;
}

interface OpenBatch {
  readonly index: number;
  readonly target: BatchTarget;
  readonly writer: LineWriter;
  count: number;
  bytes: number;
  holdNano: bigint;
  /** Price of the last line. Undefined before the first line. */
  price: Price | null | undefined;
}

export class BatchPlanner {
  readonly #storage: Storage;
  readonly #jobLines: JobLines;
  readonly #owner: Owner;
  readonly #x: RequestHead;
  readonly #id: string;
  readonly #path: string;
  readonly #allowsDirect: boolean;
  readonly #lines: LineWriter;
  readonly #open = new Map<string, OpenBatch>();
  readonly #all: OpenBatch[] = [];
  /** Hashes of all custom IDs, because the IDs of a large batch would need much memory. */
  readonly #customIds = new Set<string>();
  /** Number of lines that were planned or rejected. */
  #count = 0;
  readonly #claims = new Map<string, Claim>();
  readonly #unpriced: { readonly line: number; readonly fault: Fault }[] = [];
  #unpricedCount = 0;
  #holdNano: bigint | null = 0n;
  #account: string | undefined;
  #labels: BatchPlan["labels"] = {};
  #failed = 0;
  #turnEnd = performance.now() + TURN_MS;

  constructor(
    storage: Storage,
    jobLines: JobLines,
    of: {
      readonly owner: Owner;
      readonly x: RequestHead;
      readonly id: string;
      readonly path: string;
      /** Whether the gateway may send lines itself. */
      readonly allowsDirect: boolean;
    },
  ) {
    this.#storage = storage;
    this.#jobLines = jobLines;
    this.#owner = of.owner;
    this.#x = of.x;
    this.#id = of.id;
    this.#path = of.path;
    this.#allowsDirect = of.allowsDirect;
    this.#lines = new LineWriter(storage, of.owner, `${of.id}~lines`);
  }

  get total(): number {
    return this.#customIds.size;
  }

  /**
   * Checks the ID of a line. Returns why it is not accepted. The results of lines without their own
   * ID could not be told apart.
   */
  registerId(id: unknown): string | undefined {
    if (typeof id !== "string" || id === "") return "custom_id must be text.";
    if (Buffer.byteLength(id) > MAX_CUSTOM_ID_BYTES)
      return `custom_id is longer than ${MAX_CUSTOM_ID_BYTES} bytes.`;
    const before = this.#customIds.size;
    this.#customIds.add(createHash("sha256").update(id).digest("base64").slice(0, 22));
    return this.#customIds.size === before
      ? `custom_id "${id.slice(0, MAX_QUOTED_ID)}" is not unique.`
      : undefined;
  }

  /**
   * Plans a line. An error of the line is stored in place of its request.
   * @param place Number of the line in the input, for errors.
   */
  async add(place: number, id: string, body: Buffer): Promise<void> {
    await this.#takeTurn();
    const preferred = this.#all.map(({ target }) => target);
    const line = { path: this.#path, body };
    try {
      const planned = await this.#jobLines.planLine(line, {
        parentRequest: this.#x,
        preferred,
        allowsDirect: this.#allowsDirect,
      });
      const batch = await this.#batchFor(planned.target, Buffer.byteLength(planned.body));
      const n = ++this.#count;
      if (!batch.target.isDirect) await batch.writer.write(`${lineId(n)} ${planned.body}\n`);
      this.#labels = planned.labels;
      this.#account = planned.account;
      for (const claim of planned.claims) this.#addClaim(claim);
      const { holdNano, price = null } = planned;
      this.#holdNano =
        this.#holdNano === null || holdNano === null ? null : this.#holdNano + holdNano;
      const header: LineHeader = {
        n,
        id,
        batch: batch.index,
        holdNano: holdNano?.toString() ?? null,
        ...(price !== batch.price && { price }),
      };
      batch.price = price;
      batch.holdNano += holdNano ?? 0n;
      await this.#lines.write(`${JSON.stringify(header)}\n`);
      await this.#lines.write(`${body.toString().replaceAll("\r", " ")}\n`);
    } catch (error) {
      const fault = getFault(error);
      if (fault?.kind === "quota" && isUnpriced(fault)) {
        this.#unpricedCount++;
        if (this.#unpriced.length < MAX_LISTED_LINES) this.#unpriced.push({ line: place, fault });
      } else if (fault && LINE_ERRORS.has(fault.kind)) await this.reject(id, fault);
      else throw error;
    }
  }

  /** Stores the error of a line. */
  async reject(id: string, fault: Fault): Promise<void> {
    this.#failed++;
    const header: LineHeader = { n: ++this.#count, id, fault: shortened(fault) };
    await this.#lines.write(`${JSON.stringify(header)}\n\n`);
  }

  async finish(): Promise<BatchPlan> {
    this.#rejectUnpriced();
    const batches: ProviderBatch[] = [];
    for (const batch of this.#all) {
      const { target, writer, count, bytes, index } = batch;
      this.#requireMinimum(batch);
      const input = await writer.finish();
      const key = `${this.#id}-${index}`;
      // The headers are in the file, because they can be large.
      const stored = { ...target, headers: {} };
      const holdNano = batch.holdNano.toString();
      batches.push({ target: stored, key, input, count, bytes, holdNano, state: "planned" });
    }
    return {
      lines: await this.#lines.finish(),
      batches,
      claims: [...this.#claims.values()],
      holdNano: this.#holdNano,
      total: this.total,
      failed: this.#failed,
      account: this.#account,
      labels: this.#labels,
    };
  }

  async discard(): Promise<void> {
    for (const { writer } of this.#all) await writer.discard();
    await this.#lines.discard();
  }

  /** Returns the provider batch for a line, and counts the line. */
  async #batchFor(target: BatchTarget, bytes: number): Promise<OpenBatch> {
    const name = JSON.stringify(target);
    const { lines, bytes: maxBytes } = this.#limitsOf(target);
    let batch = this.#open.get(name);
    const size = bytes + LINE_OVERHEAD_BYTES;
    if (size > maxBytes)
      fail(
        "too_large",
        `The line is larger than ${maxBytes} bytes, which ${target.provider} accepts.`,
      );
    const used = batch ? batch.bytes + batch.count * LINE_OVERHEAD_BYTES : 0;
    if (!batch || batch.count === lines || used + size > maxBytes) {
      if (this.#all.length === MAX_BATCHES)
        fail(
          "quota",
          `A batch can use up to ${MAX_BATCHES} models or parts. Create several batches.`,
          {
            code: "too_many_models",
          },
        );
      const index = this.#all.length;
      const writer = new LineWriter(this.#storage, this.#owner, `${this.#id}~${index}`);
      await writer.write(`${JSON.stringify(target.headers)}\n`);
      batch = { index, target, writer, count: 0, bytes: 0, holdNano: 0n, price: undefined };
      this.#open.set(name, batch);
      this.#all.push(batch);
    }
    batch.count++;
    batch.bytes += bytes;
    return batch;
  }

  #limitsOf(target: BatchTarget): BatchLimits {
    if (target.isDirect) return DIRECT_LIMITS;
    const opened = this.#jobLines.openBatches(target, this.#x.signal);
    return opened?.batches.limits ?? fail("unavailable", `${target.provider} is not available.`);
  }

  #requireMinimum({ target, count }: OpenBatch): void {
    const { minLines = 1 } = this.#limitsOf(target);
    if (count < (minLines ?? 1))
      fail(
        "invalid",
        `${target.provider} runs batches of at least ${minLines} lines, but ${count} lines are for ${target.model}.`,
        { code: "too_few_lines" },
      );
  }

  #addClaim(claim: Claim): void {
    const name = `${claim.unit} ${claim.per} ${claim.scope}`;
    const sum = this.#claims.get(name);
    this.#claims.set(name, { ...claim, take: claim.take + (sum?.take ?? 0n) });
  }

  /** Rejects the batch if a budget applies and the cost of a line is not known. */
  #rejectUnpriced(): void {
    const [first] = this.#unpriced;
    if (!first) return;
    const numbers = this.#unpriced.map(({ line }) => line).join(", ");
    const more = this.#unpricedCount - this.#unpriced.length;
    const { message, code } = first.fault;
    fail(
      "quota",
      `Cost unknown for lines ${numbers}${more > 0 ? `, and ${more} more` : ""}: ${message}`,
      {
        code,
        details: { lines: this.#unpriced.map(({ line }) => line) },
      },
    );
  }

  /** Lets other requests run. Planning itself waits for nothing. */
  async #takeTurn(): Promise<void> {
    if (performance.now() < this.#turnEnd) return;
    if (this.#x.signal.aborted) fail("canceled", "The client disconnected.");
    await new Promise((resolve) => setImmediate(resolve));
    this.#turnEnd = performance.now() + TURN_MS;
  }
}

const isUnpriced = ({ code }: Fault): boolean =>
  code === "unpriced_model" || code === "unpriced_unit";

/** Returns an error with texts of bounded length. */
function shortened({ kind, message, code, param }: Fault): NonNullable<LineHeader["fault"]> {
  const name = (text: Opt<string>) => text?.slice(0, MAX_FAULT.name);
  return {
    kind,
    message: message.slice(0, MAX_FAULT.message),
    code: name(code),
    param: name(param),
  };
}

/** ID of a line at the provider. All have the same length. */
export const lineId = (n: number): string => String(n).padStart(8, "0");
