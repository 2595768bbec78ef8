// Definition of a frontend in the playground. The page uses only these definitions to send
// requests, show responses, and generate code.

/** A file that the reader attached, for use in a form and in a JSON body. */
export interface AttachedFile {
  readonly file: File;
  /** Data URL: "data:image/png;base64,…". */
  readonly dataUrl: string;
}

export interface Draft {
  readonly model: string;
  readonly system: string;
  readonly prompt: string;
  readonly stream: boolean;
  /** Whether the model may call the example tool. */
  readonly tool: boolean;
  readonly image: AttachedFile | undefined;
  readonly audio: AttachedFile | undefined;
  /** Documents, one per line. */
  readonly documents: string;
  readonly voice: string;
  readonly format: string;
}

export type Field = "system" | "documents" | "voice" | "stream" | "tool" | "image" | "audio";

/** Fields of a JSON body, or of a form if a value is a file. */
export type RequestFields = Readonly<Record<string, unknown>>;

export const isForm = (body: RequestFields): boolean =>
  Object.values(body).some((value) => value instanceof File);

/** Parts of a response to show, in one form for all frontends. */
export interface ResponseParts {
  text: string;
  reasoning: string;
  /** Tool calls as the model wrote them. */
  toolCalls: string;
  /** Images as base64 or as URLs. */
  images: string[];
  embeddings: (readonly number[])[];
  /** Ranking, best first. */
  ranking: { readonly index: number; readonly score: number }[];
  moderation: { readonly name: string; readonly score: number; readonly flagged: boolean }[];
  /** URL of the complete audio. */
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

/**
 * How a program sends the request: the library, its method, and its arguments if they differ from
 * the body.
 */
export interface SnippetSpec {
  readonly library: "openai" | "anthropic" | "cohere" | "google";
  readonly method: string;
  arguments?(draft: Draft): RequestFields;
  /** File name to save the response to, if the response is a file. */
  readonly savedFileName?: (draft: Draft) => string;
}

export interface PlaygroundFrontend {
  readonly title: string;
  /** Type of the model that responds. */
  readonly operation: string;
  readonly defaultModel: string;
  path(draft: Draft): string;
  /** Header for the key. Default: a bearer token. */
  readonly keyHeader?: "x-api-key" | "x-goog-api-key";
  /** Label of the prompt. If unset, the frontend has no prompt. */
  readonly promptLabel?: string;
  readonly fields: readonly Field[];
  /** Field without which the request cannot be sent. */
  readonly requiredField?: "image" | "audio";
  buildBody(draft: Draft): RequestFields;
  /**
   * Adds the content of an event or of a complete response. Unknown parts are ignored, because the
   * page also shows the raw response.
   */
  addEvent(parts: ResponseParts, event: any): void;
  readonly snippet: SnippetSpec;
}

/** Returns the lines that are not blank. */
export const nonEmptyLines = (text: string): string[] =>
  text.split("\n").filter((line) => line.trim() !== "");

export const toInlineData = ({ dataUrl, file }: AttachedFile): { type: string; data: string } => ({
  type: file.type,
  data: dataUrl.slice(dataUrl.indexOf(",") + 1),
});
