// The parts of a request that providers cache, in the order in which providers read them.
import type { Json, PROMPT_SECTIONS } from "tollgate/plugin";

export type SectionName = (typeof PROMPT_SECTIONS)[number];

/** One item of a section, as text. */
export interface PromptItem {
  readonly section: SectionName;
  /** Place in the body, such as `messages[3]`. */
  readonly path: string;
  readonly text: string;
}

export interface PromptSections {
  readonly items: readonly PromptItem[];
  /** Text of the first message. */
  readonly first: string;
}

/** Fields of chat protocols that are cached, in the order in which providers read them. */
const FIELDS: readonly (readonly [section: SectionName, field: string])[] = [
  ["tools", "tools"],
  ["instructions", "system"],
  ["instructions", "instructions"],
  ["instructions", "systemInstruction"],
  ["messages", "messages"],
  ["messages", "input"],
  ["messages", "contents"],
];
/** Maximum size of a compared request, in UTF-16 units. A larger request is not compared. */
const MAX_TEXT = 8 * 1024 * 1024;

/** Reads the sections of a body. Returns undefined if it has no messages or is too large. */
export function promptSections(
  get: (field: string) => Json | undefined,
): PromptSections | undefined {
  const items: PromptItem[] = [];
  let first: string | undefined;
  let size = 0;
  for (const [section, field] of FIELDS) {
    const value = get(field);
    if (value === undefined || value === null) continue;
    for (const [i, each] of (Array.isArray(value) ? value : [value]).entries()) {
      // A breakpoint is a mark, and no part of the prompt.
      const text = JSON.stringify(each, (key, of: unknown) =>
        key === "cache_control" ? undefined : of,
      );
      size += text.length;
      if (size > MAX_TEXT) return undefined;
      items.push({ section, path: Array.isArray(value) ? `${field}[${i}]` : field, text });
      if (section === "messages") first ??= text;
    }
  }
  return first === undefined ? undefined : { items, first };
}
