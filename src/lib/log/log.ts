// The gateway's log: JSON to a pipe, readable text to a terminal. It contains one line per event
// that concerns an operator. It never contains bodies or secrets. Like every file in `src/lib`,
// this file does not depend on models and imports only other files of `src/lib`.
import pino from "pino";
import { SecretMask } from "./secret-mask.ts";
import { isSystemdJournal } from "./systemd-journal.ts";
import { LogOutput } from "./log-output.ts";
import { formatLogLine } from "./pretty-log.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];
type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** The contract's Logger with additions for the host. */
export interface Log extends Readonly<Record<Level, Write>> {
  /** Returns a logger that adds these fields to every line. */
  child(fields: Readonly<Record<string, unknown>>): Log;
  /** Sets the level of this log and all its children. */
  setLevel(level: Level): void;
  /** Adds values that are masked in all later lines. */
  addSecrets(values: Iterable<string>): void;
  /** Writes buffered lines. Lines are also written automatically at exit. */
  flush(): void;
}

export interface LogOptions {
  /** Initial level. `setLevel` changes it. */
  readonly level: Level;
  /** Whether to write readable text with colors instead of JSON. */
  readonly pretty: boolean;
  /** The mask, which can be shared with other outputs. Default: a new mask. */
  readonly mask?: SecretMask;
  /** Receives each line. Default: write to stdout. */
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

/**
 * Returns the priority prefix from which the systemd journal reads a line's level. The level is the
 * first member of the line.
 */
function journalPriorityOf(line: string): string {
  const level = /^\{"level":"(\w+)"/.exec(line)?.[1];
  return PRIORITY[level as Level] ?? "";
}

/**
 * Lines are written in the background, except on a terminal, where they must be in order with other
 * printed text.
 */
const stdout = (sync: boolean) => new LogOutput(1, { sync });

/**
 * Version suffix with which Node distinguishes a changed plugin file from the previous version. It
 * is removed, because no editor can open a file with that name.
 */
const VERSION = /\?version=[0-9a-f]+(?=:\d)/;

/**
 * Keeps only the properties of an error that contain no request and no headers. Other properties of
 * third-party errors often contain them.
 */
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
