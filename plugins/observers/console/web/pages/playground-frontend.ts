// What the playground knows of a frontend: one table each. The page asks, shows and writes code by these and by nothing else.

/** A file of the reader's, as it is sent in a form and as it is written into a body. */
export interface Attached {
  readonly file: File;
  /** "data:image/png;base64,…" */
  readonly address: string;
}

export interface Draft {
  readonly model: string;
  readonly system: string;
  readonly prompt: string;
  readonly stream: boolean;
  /** Whether it may call one. */
  readonly tool: boolean;
  readonly picture: Attached | undefined;
  readonly sound: Attached | undefined;
  /** One a line. */
  readonly documents: string;
  readonly voice: string;
  readonly format: string;
}

export type Field = "system" | "documents" | "voice" | "stream" | "tool" | "picture" | "sound";

/** A body of JSON, or a form when something in it is a file. */
export type Words = Readonly<Record<string, unknown>>;

export const isForm = (body: Words): boolean =>
  Object.values(body).some((value) => value instanceof File);

/** What is shown of an answer, whichever frontend it came through. */
export interface Heard {
  text: string;
  thought: string;
  /** Calls of the tool, as the model wrote them. */
  calls: string;
  /** base64, or addresses. */
  pictures: string[];
  vectors: (readonly number[])[];
  /** Best first. */
  ranked: { readonly index: number; readonly score: number }[];
  judged: { readonly name: string; readonly score: number; readonly flagged: boolean }[];
  /** An address that holds it whole. */
  sound: string;
  usage: unknown;
  error: string;
}

export const nothing = (): Heard => ({
  text: "",
  thought: "",
  calls: "",
  pictures: [],
  vectors: [],
  ranked: [],
  judged: [],
  sound: "",
  usage: undefined,
  error: "",
});

/** How a program asks: the library, its method, and what the method is given where that is not the body. */
export interface InCode {
  readonly library: "openai" | "anthropic" | "cohere" | "google";
  readonly method: string;
  words?(draft: Draft): Words;
  /** The answer is a file of this name. */
  readonly saves?: (draft: Draft) => string;
}

export interface Frontend {
  readonly said: string;
  /** The kind of model that answers, and one that is there without a key. */
  readonly kind: string;
  readonly usual: string;
  path(draft: Draft): string;
  /** The header that carries the key; absent: it is a bearer's. */
  readonly as?: "x-api-key" | "x-goog-api-key";
  /** What the prompt is here; absent: there is none. */
  readonly prompt?: string;
  readonly fields: readonly Field[];
  /** A field that it cannot be asked without. */
  readonly needs?: "picture" | "sound";
  body(draft: Draft): Words;
  /** Adds what one event, or a whole answer, says. What it does not know it passes over: the wire beside it has all. */
  hear(heard: Heard, event: any): void;
  readonly code: InCode;
}

/** Those with something on them. */
export const linesOf = (text: string): string[] =>
  text.split("\n").filter((line) => line.trim() !== "");

export const dataOf = ({ address, file }: Attached): { type: string; data: string } => ({
  type: file.type,
  data: address.slice(address.indexOf(",") + 1),
});
