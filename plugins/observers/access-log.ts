// Writes one line for each completed request to a file or to standard output, as JSON or logfmt.
import {
  defineObserver,
  isSystemdJournal,
  type Context,
  type RequestOutcome,
} from "tollgate/plugin";
import { FIELD_NAMES, rejectionOutcome } from "./access-log/fields.ts";
import { LineBuffer } from "./access-log/line-buffer.ts";
import {
  JournalRateMonitor,
  JOURNAL_LINES_PER_SECOND,
  levelPrefix,
} from "./access-log/systemd-journal.ts";
import { createRejectedLineWriter, createLineWriter } from "./access-log/line-format.ts";
import { Output } from "./access-log/output.ts";

/** Interval at which the observer checks whether the open file is still the one at its path. */
const ROTATION_CHECK_MS = 1_000;

export default defineObserver({
  api: 1,
  name: "access-log",
  summary: "A line for every request",
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
      format: { enum: ["json", "logfmt"], default: "json", description: "How a line is written" },
      fields: {
        type: "array",
        minItems: 1,
        uniqueItems: true,
        items: { enum: FIELD_NAMES },
        description: "What a line says, in this order. Absent: all that is known",
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
            description: "Of requests that went well so many are written; of all others each",
          },
        },
        description: "Fewer lines, each with its rate",
      },
      client_address: {
        enum: ["none", "prefix", "full"],
        default: "prefix",
        description: "Of a client's address: nothing, its network (/24, /48), or all",
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
    const gathered = new LineBuffer(output);
    const write = (text: string, count: number) => {
      if (count === 0) return undefined;
      haste?.add(count, performance.now());
      return gathered.add(text, count);
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
        await gathered.flush();
        await output.reopen();
      },
      flush: () => gathered.flush(),
      commands: {
        counts: {
          summary: "Lines that were written, and lines that could not be",
          role: "viewer",
          writes: false,
          async run() {
            await gathered.flush();
            return { file: path ?? null, ...output.counts };
          },
        },
      },
    };
  },
});

const createOutputEvents = (log: Context["log"], path: string | undefined) => ({
  onError: (err: unknown) =>
    log.error({ file: path, err }, "the access log cannot be written; requests go on"),
  onRecovered: (lost: number) =>
    log.warn({ file: path, lost }, "the access log is written again; lines are missing"),
});

const createRateWarning = (log: Context["log"]) => (rate: number) =>
  log.warn(
    { rate, most: Math.floor(JOURNAL_LINES_PER_SECOND) },
    "the access log is faster than the journal usually takes lines; what is too much is missing there",
  );
