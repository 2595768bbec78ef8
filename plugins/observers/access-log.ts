// Writes one line for each completed request to a file or to standard output, as JSON or logfmt.
import {
  BatchQueue,
  defineObserver,
  isSystemdJournal,
  type Context,
  type RequestOutcome,
} from "tollgate/plugin";
import {
  FIELD_NAMES,
  rejectionOutcome,
  createRejectedLineWriter,
  createLineWriter,
} from "./access-log/fields.ts";
import {
  JournalRateMonitor,
  JOURNAL_LINES_PER_SECOND,
  levelPrefix,
  Output,
} from "./access-log/output.ts";

/** Interval at which the observer checks whether the path still refers to the open file. */
const ROTATION_CHECK_MS = 1_000;
/**
 * Minimum time between two writes. One write costs as much as formatting 100 lines, and a busy
 * gateway logs up to 10,000 lines per second. At low rates each line is written immediately.
 */
const MIN_WRITE_INTERVAL_MS = 25;
/** Number of waiting characters from which lines are written without a pause. */
const MAX_CHARACTERS = 64 * 1024;

/** A number of complete lines. */
interface Lines {
  readonly text: string;
  readonly count: number;
}

export default defineObserver({
  api: 1,
  name: "access-log",
  summary: "Write one line per request",
  stability: "beta",
  sends: "nowhere",
  needs: { env: ["JOURNAL_STREAM"] },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      file: {
        type: "string",
        minLength: 1,
        "x-path": true,
        description: "File for the lines, relative to gateway.yaml. Default: standard output",
      },
      format: { enum: ["json", "logfmt"], default: "json", description: "Format of the lines" },
      fields: {
        type: "array",
        minItems: 1,
        uniqueItems: true,
        items: { enum: FIELD_NAMES },
        description: "Fields of a line, in this order. Default: all fields",
      },
      sample: {
        type: "object",
        additionalProperties: false,
        default: {},
        properties: {
          ok: {
            type: "number",
            exclusiveMinimum: 0,
            maximum: 1,
            default: 1,
            description:
              "Share of successful requests to log, greater than 0 and up to 1. All other " +
              "requests are always logged",
          },
        },
        description: "Sampling. Each line of a sampled request contains the rate",
      },
      client_address: {
        enum: ["none", "prefix", "full"],
        default: "prefix",
        description:
          "Part of the client address to log: none, prefix (its /24 or /48 network), or full",
      },
    },
  },
  async setup({ file: path, format, fields, sample, client_address }, ctx) {
    // The shared value outlives this config generation, so only `log` is captured from the context.
    const { log } = ctx;
    const output = ctx.shared(
      `to ${path ?? "standard output"}`,
      () => new Output(path, createOutputEvents(log, path)),
      (one) => one.close(),
    );
    await output.checkWritable();
    if (path !== undefined) ctx.runEvery(ROTATION_CHECK_MS, () => output.reopenIfRotated());
    const journal = path === undefined && isSystemdJournal(ctx.env("JOURNAL_STREAM"));
    const haste = journal
      ? ctx.shared("haste", () => new JournalRateMonitor(createRateWarning(log)))
      : undefined;
    const names = (fields as readonly (typeof FIELD_NAMES)[number][] | undefined) ?? FIELD_NAMES;
    const [line, doorLine] = [
      createLineWriter(format, names),
      createRejectedLineWriter(format, names),
    ];
    const rate = sample.ok ?? 1;
    const prefix = (outcome: RequestOutcome) => (journal ? levelPrefix(outcome) : "");
    const lines = new BatchQueue<Lines>({
      maxBytes: MAX_CHARACTERS,
      sizeOf: ({ text }) => text.length,
      overflow: "wait",
      delayMs: MIN_WRITE_INTERVAL_MS,
      delayFrom: "last_batch",
      deliver: (all) =>
        output.write(
          all.map(({ text }) => text).join(""),
          all.reduce((sum, { count }) => sum + count, 0),
        ),
    });
    const write = (text: string, count: number) => {
      if (count === 0) return undefined;
      haste?.add(count, performance.now());
      lines.push({ text, count });
      return lines.whenRoom();
    };
    return {
      clientAddress: client_address,
      onRequests(batch) {
        let [text, count] = ["", 0];
        for (const record of batch) {
          const isOk = record.outcome === "ok";
          if (isOk && rate < 1 && Math.random() >= rate) continue;
          text += prefix(record.outcome) + line(record, isOk ? rate : 1);
          count++;
        }
        return write(text, count);
      },
      onRejected(batch) {
        const clients = batch.filter(({ listener }) => listener === "public");
        const all = clients.map((one) => prefix(rejectionOutcome(one)) + doorLine(one, 1));
        return write(all.join(""), all.length);
      },
      async onEvent({ type }) {
        if (type !== "reload_requested") return;
        await lines.drain();
        await output.reopen();
      },
      flush: async () => void (await lines.drain()),
      commands: {
        counts: {
          summary: "Show the number of written and lost lines",
          role: "viewer",
          writes: false,
          async run() {
            await lines.drain();
            return { file: path ?? null, ...output.counts };
          },
        },
      },
    };
  },
});

const createOutputEvents = (log: Context["log"], path: string | undefined) => ({
  onError: (err: unknown) =>
    log.error({ file: path, err }, "access log not writable, requests continue"),
  onRecovered: (lost: number) =>
    log.warn({ file: path, lost }, "access log writable again, lines are missing"),
});

const createRateWarning = (log: Context["log"]) => (rate: number) =>
  log.warn(
    { rate, most: Math.floor(JOURNAL_LINES_PER_SECOND) },
    "access log exceeds usual journal rate limit, journal may drop lines",
  );
