// What the playground knows of a frontend: one table each. The page asks, shows and writes code by these and by nothing else.

/** A file of the reader's, as it is sent in a form and as it is written into a body. */
export interface AttachedFile {
  readonly file: File;
  /** "data:image/png;base64,…" */
  readonly dataUrl: string;
}

export interface Draft {
  readonly model: string;
  readonly system: string;
  readonly prompt: string;
  readonly stream: boolean;
  /** Whether it may call one. */
  readonly tool: boolean;
  readonly image: AttachedFile | undefined;
  readonly audio: AttachedFile | undefined;
  /** One a line. */
  readonly documents: string;
  readonly voice: string;
  readonly format: string;
}

export type Field = "system" | "documents" | "voice" | "stream" | "tool" | "image" | "audio";

/** A body of JSON, or a form when something in it is a file. */
export type RequestFields = Readonly<Record<string, unknown>>;

export const isForm = (body: RequestFields): boolean =>
  Object.values(body).some((value) => value instanceof File);

/** What is shown of an answer, whichever frontend it came through. */
export interface ResponseParts {
  text: string;
  reasoning: string;
  /** Calls of the tool, as the model wrote them. */
  toolCalls: string;
  /** base64, or addresses. */
  images: string[];
  embeddings: (readonly number[])[];
  /** Best first. */
  ranking: { readonly index: number; readonly score: number }[];
  moderation: { readonly name: string; readonly score: number; readonly flagged: boolean }[];
  /** An address that holds it whole. */
  audioUrl: string;
  usage: unknown;
  error: string;
}

export const emptyResponse = (): ResponseParts => ({
  text: "",
  reasoning: "",
  toolCalls: "",
  images: [],
  embeddings: [],
  ranking: [],
  moderation: [],
  audioUrl: "",
  usage: undefined,
  error: "",
});

/** How a program asks: the library, its method, and what the method is given where that is not the body. */
export interface SnippetSpec {
  readonly library: "openai" | "anthropic" | "cohere" | "google";
  readonly method: string;
  arguments?(draft: Draft): RequestFields;
  /** The answer is a file of this name. */
  readonly savedFileName?: (draft: Draft) => string;
}

export interface PlaygroundFrontend {
  readonly title: string;
  /** The kind of model that answers, and one that is there without a key. */
  readonly operation: string;
  readonly defaultModel: string;
  path(draft: Draft): string;
  /** The header that carries the key; absent: it is a bearer's. */
  readonly keyHeader?: "x-api-key" | "x-goog-api-key";
  /** What the prompt is here; absent: there is none. */
  readonly promptLabel?: string;
  readonly fields: readonly Field[];
  /** A field that it cannot be asked without. */
  readonly requiredField?: "image" | "audio";
  buildBody(draft: Draft): RequestFields;
  /** Adds what one event, or a whole answer, says. What it does not know it passes over: the wire beside it has all. */
  addEvent(heard: ResponseParts, event: any): void;
  readonly snippet: SnippetSpec;
}

/** Those with something on them. */
export const nonEmptyLines = (text: string): string[] =>
  text.split("\n").filter((line) => line.trim() !== "");

export const toInlineData = ({ dataUrl, file }: AttachedFile): { type: string; data: string } => ({
  type: file.type,
  data: dataUrl.slice(dataUrl.indexOf(",") + 1),
});
