// One line for each thing that an operator should know: JSON to a pipe, words to a terminal. Never a body, never a secret.
import pino from "pino";
import { Mask } from "./mask.ts";
import { pretty } from "./pretty.ts";

export type Level = "debug" | "info" | "warn" | "error";
type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** What the contract calls a Logger, and a little more for the host. */
export interface Log extends Readonly<Record<Level, Write>> {
  /** The same log with these fields on every line. */
  child(fields: Readonly<Record<string, unknown>>): Log;
  /** Values that no line may show from now on. */
  secrets(values: Iterable<string>): void;
  /** Writes out what is buffered. At exit it happens by itself. */
  flush(): void;
}

export interface LogOptions {
  readonly level: Level;
  /** Words and colours instead of JSON. */
  readonly pretty: boolean;
  /** Shared with whoever else must not show a secret. */
  readonly mask?: Mask;
  /** Absent: stdout. */
  readonly write?: (line: string) => void;
}

export function createLog(options: LogOptions): Log {
  const mask = options.mask ?? new Mask();
  const out = options.write ? { write: options.write, flush() {} } : stdout(options.pretty);
  const lines = {
    write: (line: string) => {
      const safe = mask.json(line);
      out.write(options.pretty ? pretty(safe) : safe.endsWith("\n") ? safe : `${safe}\n`);
    },
  };
  const root = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: errorShape, err: errorShape, cause: errorShape },
    },
    lines,
  );
  const wrap = (logger: pino.Logger): Log => ({
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    child: (fields) => wrap(logger.child(fields)),
    secrets: (values) => mask.add(values),
    flush: () => out.flush(),
  });
  return wrap(root);
}

/** Written in the background, except on a terminal, where lines must not overtake what is printed beside them. */
function stdout(sync: boolean) {
  const stream = pino.destination({ fd: 1, sync });
  return {
    write: (line: string) => void stream.write(line),
    flush() {
      try {
        stream.flushSync();
      } catch {
        // Not open yet, or closed by the reader: there is nobody to write to.
      }
    },
  };
}

/** The parts of an error that hold no request and no header: other properties of foreign errors often do. */
function errorShape(error: unknown): unknown {
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
      .map((line) => line.trim())
      .join("\n"),
    ...(cause instanceof Error ? { cause: errorShape(cause) } : {}),
    ...(error instanceof AggregateError
      ? { errors: error.errors.slice(0, 8).map(errorShape) }
      : {}),
  };
}
