// The client's view by its protocol: a complete response, a response that ends with an error, or an
// error.
import { FRONTENDS, NUMBER, WORDS, type FrontendName } from "./request-paths.ts";
import type { Outcome, RowKind } from "./failure-modes.ts";

export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Its connection was closed. */
  readonly cut: boolean;
  readonly ms: number;
}

/** Result of one request. `problem`: it has no valid form. */
export type Seen =
  | { readonly client: "served" | "passed" | "broken" }
  | { readonly client: number; readonly code: string }
  | { readonly problem: string };

interface Shape {
  /** Name or content of the last event except for `[DONE]`. */
  readonly ends: RegExp;
  readonly fails: RegExp;
}

/** Its events have data only. */
const BARE: Shape = { ends: /^\[DONE\]$/, fails: /^\{"error":\{"message":/ };
const SHAPES: { readonly [F in FrontendName]?: Shape } = {
  "chat-completions": BARE,
  completions: BARE,
  gemini: { ends: /"finishReason":/, fails: /^\{"error":\{"code":/ },
  messages: { ends: /^message_stop$/, fails: /^error$/ },
  responses: { ends: /^response\.(completed|incomplete)$/, fails: /^(response\.failed|error)$/ },
  images: { ends: /^image_generation\.completed$/, fails: /^error$/ },
  edits: { ends: /^image_edit\.completed$/, fails: /^error$/ },
  speech: { ends: /"speech\.audio\.done"/, fails: BARE.fails },
  transcriptions: { ends: /"transcript\.text\.done"/, fails: BARE.fails },
};

/** Each of their events has a name. */
const NAMED: ReadonlySet<FrontendName> = new Set(["messages", "responses", "images", "edits"]);
/** Some of their clients take an error for the normal end unless the connection is aborted. */
const BREAKS: ReadonlySet<FrontendName> = new Set(["gemini", "speech"]);

interface ToldEvent {
  readonly name: string;
  readonly data: string;
}

/** By the standard: lines end with LF, CR, or both, and an event without data is ignored. */
function eventsIn(text: string): ToldEvent[] {
  const events: ToldEvent[] = [];
  for (const part of text.replace(/\r\n?/g, "\n").split(/\n{2,}/)) {
    const lines = part.split("\n");
    const field = (name: string) =>
      lines.flatMap((line) =>
        line.startsWith(`${name}:`) ? [line.slice(name.length + 1).replace(/^ /, "")] : [],
      );
    const data = field("data").join("\n");
    if (data !== "") events.push({ name: field("event").at(-1) ?? "", data });
  }
  return events;
}

const problem = (said: string): Seen => ({ problem: said });
const excerpt = (text: string) => JSON.stringify(text.length > 300 ? `…${text.slice(-300)}` : text);

export function seen(from: FrontendName, stream: boolean, heard: Heard): Seen {
  const { status, headers, text, cut } = heard;
  if (status === 0) return problem(`no answer: ${excerpt(text)}`);
  if (/POISON/.test(text)) return problem("an answer that belongs to another request");
  if (!headers.get("x-request-id") && !headers.get("request-id")) return problem("no id");
  if (status !== 200) return refusal(from, status, headers, text);
  // Audio cannot express an error. It ends too early, which tells its client.
  if (cut && from === "speech" && !stream) return { client: "broken" };
  if (!stream) return cut ? problem(`cut off: ${excerpt(text)}`) : whole(from, text);
  const shape = SHAPES[from]!;
  const { ends, fails } = shape;
  const events = eventsIn(text).map((event) => (NAMED.has(from) ? typeOf(event) : event.data));
  // Google's clients read to the end of the body.
  const last =
    from === "gemini"
      ? events.findLast((event) => ends.test(event))
      : events.findLast((event) => event !== "[DONE]" || shape === BARE);
  const isEnded = last !== undefined && ends.test(last);
  if (events.some((event) => fails.test(event))) {
    if (isEnded) return problem(`an error, and the end: ${excerpt(text)}`);
    return cut !== BREAKS.has(from)
      ? problem(`an error, ${cut ? "cut off" : "and no break"}: ${excerpt(text)}`)
      : { client: "broken" };
  }
  if (cut) return problem(`cut off: ${excerpt(text)}`);
  if (!isEnded) return problem(`neither an end nor an error: ${excerpt(text)}`);
  return { client: isAll(from, text) ? "served" : "passed" };
}

/** In the data, and on a line of its own. */
function typeOf({ name, data }: ToldEvent): string {
  try {
    const { type } = JSON.parse(data);
    return typeof type === "string" ? type : name;
  } catch {
    return name || data;
  }
}

/** Its text deltas, joined. */
function isAll(from: FrontendName, told: string): boolean {
  if (isDrawn(from)) return told.includes("iVBOR");
  const said = [...told.matchAll(/"(?:content|text|delta)":"([^"]*)"/g)].map(([, word]) => word);
  const spoken = [...told.matchAll(/"audio":"([^"]*)"/g)].map(([, bytes]) =>
    Buffer.from(bytes!, "base64").toString(),
  );
  return [...said, ...spoken].join("").includes(WORDS);
}

const isDrawn = (from: FrontendName) => FRONTENDS[from].kind === "image";

/** Fields of a non-streaming response of its type. */
function mark(from: FrontendName): string {
  const { kind } = FRONTENDS[from];
  if (kind === "image") return "iVBOR";
  return kind === "embedding" || kind === "rerank" || kind === "moderation" ? NUMBER : WORDS;
}

function whole(from: FrontendName, text: string): Seen {
  const isAll = text.includes(mark(from));
  if (from === "speech") return { client: isAll ? "served" : "passed" };
  try {
    const body = JSON.parse(text);
    if (body.error) return problem(`status 200 with an error: ${excerpt(text)}`);
    return { client: isAll ? "served" : "passed" };
  } catch {
    return { client: "passed" };
  }
}

const isGoogles = (from: FrontendName) => from === "gemini" || from === "gemini-vectors";

const isShaped = (from: FrontendName, status: number, error: any): boolean =>
  isGoogles(from)
    ? error.code === status && /^[A-Z_]+$/.test(error.status)
    : typeof error.type === "string";

function refusal(from: FrontendName, status: number, headers: Headers, text: string): Seen {
  try {
    const { type, error } = JSON.parse(text);
    if (typeof error?.message !== "string" || !isShaped(from, status, error))
      return problem(`no error of its protocol: ${excerpt(text)}`);
    if (from === "messages" && type !== "error") return problem(`no type: ${excerpt(text)}`);
    if (headers.get("content-type") !== "application/json")
      return problem(`an error as ${headers.get("content-type")}`);
    if (!/^(true|false)$/.test(headers.get("x-should-retry") ?? ""))
      return problem("it does not say whether it may be sent again");
    const wait = headers.get("retry-after");
    if (wait !== null && !/^[1-9]\d{0,8}$|^0$/.test(wait)) return problem(`retry-after: ${wait}`);
    const code = isGoogles(from)
      ? (error.details?.[0]?.reason ?? error.status)
      : (error.code ?? error.details?.error_code ?? error.type);
    return { client: status, code: String(code) };
  } catch {
    return problem(`${status} without JSON: ${excerpt(text)}`);
  }
}

/** A row in the table's terms. Without a price it is still exact. */
export const rowKind = (state: string | undefined): RowKind | undefined =>
  state === "unpriced" ? "exact" : (state as RowKind | undefined);

export const fits = (expected: Outcome, got: Seen, row: RowKind | undefined): boolean =>
  "client" in got &&
  got.client === expected.client &&
  row === expected.row &&
  (!("code" in expected) || expected.code === "*" || ("code" in got && got.code === expected.code));

export const said = (got: Seen, row: string | undefined): string =>
  `${"problem" in got ? got.problem : "code" in got ? `${got.client} ${got.code}` : got.client}, ${row ?? "no row"}`;
