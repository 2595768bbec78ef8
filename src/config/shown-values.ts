// Lists the origin of each value in the running config: a line of a file, a variable or file that
// it refers to, the command line, or a default.
import { parseTemplate } from "./source/interpolate.ts";
import type { ConfigOverrides } from "./expand-config.ts";
import type { SourceSpan } from "./source/source-span.ts";
import { childPointer, toDisplayPath, type ConfigTree } from "./source/config-tree.ts";

/** A value without secrets. */
export interface ShownValue {
  /** "listen.port", "providers.openai.with.api_key" */
  readonly path: string;
  /** The value as written if it contains a reference. "[secret]" replaces a secret. */
  readonly value: string | number | boolean | null;
  readonly source: "file" | "variable" | "other file" | "command line" | "default";
  /** Position of a value from a file: "/etc/tollgate/gateway.yaml:3:5". */
  readonly location?: string;
}

/** Pointers that the command line overrides. */
const OVERRIDE_POINTERS: Readonly<Record<string, keyof ConfigOverrides>> = {
  "/listen/host": "host",
  "/listen/port": "port",
  "/listen/0/host": "host",
  "/listen/0/port": "port",
  "/state_dir": "stateDir",
  "/workers": "workers",
  "/log/level": "logLevel",
};

export interface ShownValueInputs {
  readonly tree: ConfigTree;
  readonly written: ReadonlyMap<string, string>;
  readonly overrides: ConfigOverrides;
  /** Pointers in the file of values that are elsewhere in the long form. */
  readonly movedFrom: ReadonlyMap<string, string>;
}

/** Returns the leaves of the shown config, in its order. */
export function listShownValues(view: unknown, of: ShownValueInputs): ShownValue[] {
  const values: ShownValue[] = [];
  const walk = (value: unknown, pointer: string) => {
    if (typeof value === "object" && value !== null) {
      for (const [key, each] of Object.entries(value)) walk(each, childPointer(pointer, key));
      return;
    }
    values.push({
      path: toDisplayPath(view, pointer),
      value: value as ShownValue["value"],
      ...valueOriginOf(of.movedFrom.get(pointer) ?? pointer, of),
    });
  };
  walk(view, "");
  return values;
}

function valueOriginOf(
  pointer: string,
  { tree, written, overrides }: ShownValueInputs,
): Pick<ShownValue, "source" | "location"> {
  const overrideName = OVERRIDE_POINTERS[pointer];
  if (overrideName !== undefined && overrides[overrideName] !== undefined)
    return { source: "command line" };
  const place = tree.positions.get(pointer)?.value;
  if (place === undefined) return { source: "default" };
  const location = formatSpan(place);
  const template = written.get(pointer);
  if (template === undefined) return { source: "file", location };
  const other = parseTemplate(template).parts.some(
    ({ kind }) => kind === "file" || kind === "credential",
  );
  return { source: other ? "other file" : "variable", location };
}

function formatSpan({ source, start }: SourceSpan): string {
  const { line, col } = source.lines.linePos(start);
  return `${source.file}:${line}:${col}`;
}
