// One line for each thing that an operator should know: JSON to a pipe, words to a terminal. Never a body, never a secret.
// Like every file of this floor it knows nothing of models, and imports nothing of ours but its neighbours.
import pino from "pino";
import { SecretMask } from "./secret-mask.ts";
import { isSystemdJournal } from "./systemd-journal.ts";
import { LogOutput } from "./log-output.ts";
import { formatLogLine } from "./pretty-log.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];
type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** What the contract calls a Logger, and a little more for the host. */
export interface Log extends Readonly<Record<Level, Write>> {
  /** The same log with these fields on every line. */
  child(fields: Readonly<Record<string, unknown>>): Log;
  /** From now on, here and in every child. */
  setLevel(level: Level): void;
  /** Values that no line may show from now on. */
  addSecrets(values: Iterable<string>): void;
  /** Writes out what is buffered. At exit it happens by itself. */
  flush(): void;
}

export interface LogOptions {
  /** Until told otherwise. */
  readonly level: Level;
  /** Words and colours instead of JSON. */
  readonly pretty: boolean;
  /** Shared with all that must not show a secret. */
  readonly mask?: SecretMask;
  /** Absent: stdout. */
  readonly write?: (line: string) => void;
}

export function createLog(options: LogOptions): Log {
  const mask = options.mask ?? new SecretMask();
  const out = options.write ? { write: options.write, flush() {} } : stdout(options.pretty);
  const levelled =
    !options.write && !options.pretty && isSystemdJournal(process.env["JOURNAL_STREAM"]);
  const lines = {
    write: (line: string) => {
      const safe = mask.maskJsonLine(line);
      if (options.pretty) return out.write(formatLogLine(safe));
      return out.write(
        `${levelled ? journalPriorityOf(safe) : ""}${safe}${safe.endsWith("\n") ? "" : "\n"}`,
      );
    },
  };
  const root = pino(
    {
      level: "debug",
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: serializeError, err: serializeError, cause: serializeError },
    },
    lines,
  );
  let least = LEVELS.indexOf(options.level);
  const wrap = (logger: pino.Logger): Log => {
    const at =
      (level: Level): Write =>
      (fields, message) => {
        if (LEVELS.indexOf(level) >= least) logger[level](fields, message);
      };
    return {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      child: (fields) => wrap(logger.child(fields)),
      setLevel: (level) => void (least = LEVELS.indexOf(level)),
      addSecrets: (values) => mask.add(values),
      flush: () => out.flush(),
    };
  };
  return wrap(root);
}

const PRIORITY: Readonly<Record<Level, string>> = {
  debug: "<7>",
  info: "<6>",
  warn: "<4>",
  error: "<3>",
};

/** The journal takes a line's level from its beginning; a line's first member says it. */
function journalPriorityOf(line: string): string {
  const level = /^\{"level":"(\w+)"/.exec(line)?.[1];
  return PRIORITY[level as Level] ?? "";
}

/** Written in the background, except on a terminal, where lines must not overtake what is printed beside them. */
const stdout = (sync: boolean) => new LogOutput(1, { sync });

/** By which Node tells a plugin's edited file from the one before: no editor opens it by that name. */
const VERSION = /\?version=[0-9a-f]+(?=:\d)/;

/** The parts of an error that hold no request and no header: other properties of foreign errors often do. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const code = (error as { code?: unknown }).code;
  return {
    name,
    message,
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    stack: stack
      ?.split("\n")
      .slice(1, 9)
      .map((line) => line.trim().replace(VERSION, ""))
      .join("\n"),
    ...(cause instanceof Error ? { cause: serializeError(cause) } : {}),
    ...(error instanceof AggregateError
      ? { errors: error.errors.slice(0, 8).map(serializeError) }
      : {}),
  };
}
