// A line for every request, when it is over: to a file or to standard output, as JSON or as logfmt.
import { defineObserver, isJournal, type Context, type RequestOutcome } from "tollgate/plugin";
import { NAMES, refusedAs } from "./access-log/fields.ts";
import { Gathered } from "./access-log/gathered.ts";
import { Haste, JOURNAL_RATE, level } from "./access-log/journal.ts";
import { doorLines, lines } from "./access-log/line.ts";
import { Output } from "./access-log/output.ts";

/** How often it is looked whether the file is still the one under its name. */
const LOOK_MS = 1_000;

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
        items: { enum: NAMES },
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
      client: {
        enum: ["none", "prefix", "full"],
        default: "prefix",
        description: "Of a client's address: nothing, its network (/24, /48), or all",
      },
    },
  },
  async setup({ file: path, format, fields, sample, client }, ctx) {
    // What is shared outlives this generation: of it the log alone is handed over.
    const { log } = ctx;
    const output = ctx.shared(
      `to ${path ?? "standard output"}`,
      () => new Output(path, news(log, path)),
      (one) => one.close(),
    );
    await output.check();
    if (path !== undefined) ctx.every(LOOK_MS, () => output.follow());
    const journal = path === undefined && isJournal(ctx.env("JOURNAL_STREAM"));
    const haste = journal ? ctx.shared("haste", () => new Haste(hurried(log))) : undefined;
    const names = (fields as readonly (typeof NAMES)[number][] | undefined) ?? NAMES;
    const [line, doorLine] = [lines(format, names), doorLines(format, names)];
    const rate = sample.ok ?? 1;
    const prefix = (outcome: RequestOutcome) => (journal ? level(outcome) : "");
    const gathered = new Gathered(output);
    const write = (text: string, count: number) => {
      if (count === 0) return undefined;
      haste?.add(count, performance.now());
      return gathered.add(text, count);
    };
    return {
      clients: client,
      seen(batch) {
        let [text, count] = ["", 0];
        for (const record of batch) {
          const isOk = record.outcome === "ok";
          if (isOk && rate < 1 && Math.random() >= rate) continue;
          text += prefix(record.outcome) + line(record, isOk ? rate : 1);
          count++;
        }
        return write(text, count);
      },
      turnedAway(batch) {
        const clients = batch.filter(({ listener }) => listener === "clients");
        const all = clients.map((one) => prefix(refusedAs(one)) + doorLine(one, 1));
        return write(all.join(""), all.length);
      },
      async told({ type }) {
        if (type !== "reload_asked") return;
        await gathered.write();
        await output.reopen();
      },
      end: () => gathered.write(),
      commands: {
        counts: {
          summary: "Lines that were written, and lines that could not be",
          role: "viewer",
          writes: false,
          async run() {
            await gathered.write();
            return { file: path ?? null, ...output.counts };
          },
        },
      },
    };
  },
});

const news = (log: Context["log"], path: string | undefined) => ({
  lost: (err: unknown) =>
    log.error({ file: path, err }, "the access log cannot be written; requests go on"),
  back: (lost: number) =>
    log.warn({ file: path, lost }, "the access log is written again; lines are missing"),
});

const hurried = (log: Context["log"]) => (rate: number) =>
  log.warn(
    { rate, most: Math.floor(JOURNAL_RATE) },
    "the access log is faster than the journal usually takes lines; what is too much is missing there",
  );
