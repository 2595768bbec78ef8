// Where each value of the config that runs comes from: a line of a file, a variable or a file that such a line names, the command
// line, or nothing at all.
import { parseTemplate } from "./source/interpolate.ts";
import type { ConfigOverrides } from "./resolve-config.ts";
import type { SourceSpan } from "./source/source-span.ts";
import {
  childPointer,
  isMapping,
  toDisplayPath,
  type ConfigTree,
  valueAt,
} from "./source/config-tree.ts";

/** A value as it may be shown. */
export interface ShownValue {
  /** "listen.port", "providers.openai.with.api_key" */
  readonly path: string;
  /** As the file writes it, where a variable is in it; "[secret]" in the place of one. */
  readonly value: string | number | boolean | null;
  readonly source: "file" | "variable" | "other file" | "command line" | "default";
  /** "/etc/tollgate/gateway.yaml:3:5", of what stands in a file. */
  readonly location?: string;
}

/** What a command line says in the place of a file. */
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
  /** Where what stands at a pointer of the view stands in the file. */
  source(pointer: string): string;
}

/** The leaves of the view, in its order. */
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
      ...valueOriginOf(of.source(pointer), of),
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
  const place = spanOf(tree, pointer);
  if (place === undefined) return { source: "default" };
  const location = formatSpan(place);
  const template = written.get(pointer);
  if (template === undefined) return { source: "file", location };
  const other = parseTemplate(template).parts.some(
    ({ kind }) => kind === "file" || kind === "credential",
  );
  return { source: other ? "other file" : "variable", location };
}

/** Its own, or that of the short form that it is written in: "chat-completions" for `{ use: chat-completions }`. */
function spanOf(tree: ConfigTree, pointer: string): SourceSpan | undefined {
  const own = tree.positions.get(pointer);
  if (own) return own.value;
  const parent = pointer.slice(0, pointer.lastIndexOf("/"));
  const place = tree.positions.get(parent);
  if (!place || isMapping(valueAt(tree.value, parent))) return undefined;
  return pointer.endsWith("/use") ? place.value : undefined;
}

function formatSpan({ source, start }: SourceSpan): string {
  const { line, col } = source.lines.linePos(start);
  return `${source.file}:${line}:${col}`;
}
