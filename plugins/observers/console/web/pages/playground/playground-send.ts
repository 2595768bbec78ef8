// Sends one request of the playground and reports its progress as data arrives.
import { REQUEST_HEADERS, readResponse, CommandError } from "../../admin-client.ts";
import { BASE_PATH } from "../../location.ts";
import {
  type Draft,
  type PlaygroundFrontend,
  type ResponseParts,
  isForm,
  emptyResponse,
  type RequestFields,
} from "./playground-frontend.ts";

export interface PlaygroundExchange {
  readonly response: ResponseParts;
  /** The documents of the request, to which the indexes of a ranking refer. */
  readonly documents: string;
  /** The response as received. */
  readonly raw: string;
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since the request was sent. */
  readonly firstByteMs: number | undefined;
  readonly totalMs: number | undefined;
  readonly error: CommandError | undefined;
}

interface PlaygroundInput {
  readonly frontend: PlaygroundFrontend;
  readonly draft: Draft;
  readonly key: string;
  readonly zdr: string;
}

const NOT_SENT = {
  raw: "",
  status: undefined,
  headers: {},
  firstByteMs: undefined,
  totalMs: undefined,
  error: undefined,
} as const;

export async function send(
  { frontend, draft, key, zdr }: PlaygroundInput,
  onChange: (sent: PlaygroundExchange) => void,
  over: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const since = () => performance.now() - began;
  let sent: PlaygroundExchange = {
    ...NOT_SENT,
    response: emptyResponse(),
    documents: draft.documents,
  };
  const update = (part: Partial<PlaygroundExchange>) => onChange((sent = { ...sent, ...part }));
  update({});
  try {
    const answer = await fetch(`${BASE_PATH}/ask`, {
      method: "POST",
      headers: REQUEST_HEADERS,
      credentials: "same-origin",
      body: JSON.stringify({
        path: frontend.path(draft),
        key_header: frontend.keyHeader,
        key,
        ...(await encodeBody(frontend.buildBody(draft))),
        ...(zdr && { zdr }),
      }),
      signal: over,
    });
    if (!answer.ok) await readResponse(answer);
    const head = JSON.parse(answer.headers.get("x-answer") ?? "{}") as {
      status: number;
      type: string | null;
      headers: Record<string, string>;
    };
    update({
      status: head.status,
      headers: { ...(head.type && { "content-type": head.type }), ...head.headers },
    });
    const type = head.type ?? "";
    const taken = type.startsWith("audio/")
      ? readAudio
      : type.startsWith("text/event-stream")
        ? readEvents
        : readJson;
    await taken({ answer, type, frontend }, (raw, parts) =>
      update({ raw, response: parts, firstByteMs: sent.firstByteMs ?? since() }),
    );
    update({ totalMs: since() });
  } catch (error) {
    if (over.aborted) return update({ totalMs: since() });
    const problem =
      error instanceof CommandError
        ? error
        : new CommandError(0, { message: "The response was truncated.", hint: `${error}` });
    update({ error: problem });
  }
}

/**
 * Encodes the body for the console's endpoint: JSON as text, or a form's bytes with its content
 * type, which contains the boundary.
 */
async function encodeBody(body: RequestFields): Promise<{ body: string; form_type?: string }> {
  if (!isForm(body)) return { body: JSON.stringify(body) };
  const form = new FormData();
  for (const [name, value] of Object.entries(body))
    form.append(name, value instanceof File ? value : `${value}`);
  const made = new Response(form);
  const type = made.headers.get("content-type")!;
  const address = await toDataUrl(await made.blob());
  return { form_type: type, body: address.slice(address.indexOf(",") + 1) };
}

/** Returns a data URL: "data:image/png;base64,…". */
export const toDataUrl = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result as string));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("not read")));
    reader.readAsDataURL(file);
  });

interface IncomingResponse {
  readonly answer: Response;
  readonly type: string;
  readonly frontend: PlaygroundFrontend;
}
type OnProgress = (raw: string, parts: ResponseParts) => void;

async function forEachChunk(
  answer: Response,
  take: (piece: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const reader = answer.body!.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
}

async function readEvents(
  { answer, frontend }: IncomingResponse,
  onProgress: OnProgress,
): Promise<void> {
  const text = new TextDecoder();
  const parts = emptyResponse();
  let raw = "";
  let at = 0;
  await forEachChunk(answer, (piece) => {
    raw += text.decode(piece, { stream: true });
    for (let end = raw.indexOf("\n", at); end >= 0; end = raw.indexOf("\n", at)) {
      const line = raw.slice(at, end).trimEnd();
      at = end + 1;
      if (line.startsWith("data:")) addToResponse(frontend, parts, tryParseJson(line.slice(5)));
    }
    onProgress(raw, { ...parts });
  });
  onProgress(raw, { ...parts });
}

async function readJson(
  { answer, frontend }: IncomingResponse,
  onProgress: OnProgress,
): Promise<void> {
  const text = new TextDecoder();
  const parts = emptyResponse();
  let raw = "";
  await forEachChunk(answer, (piece) =>
    onProgress((raw += text.decode(piece, { stream: true })), { ...parts }),
  );
  addToResponse(frontend, parts, tryParseJson(raw));
  onProgress(raw, { ...parts });
}

/** Reads audio. The raw view shows the type and size of the audio instead of its bytes. */
async function readAudio(
  { answer, type }: IncomingResponse,
  onProgress: OnProgress,
): Promise<void> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const raw = () => `${type}, ${bytes} bytes`;
  await forEachChunk(answer, (piece) => {
    bytes += piece.length;
    pieces.push(piece);
    onProgress(raw(), emptyResponse());
  });
  onProgress(raw(), { ...emptyResponse(), audioUrl: await toDataUrl(new Blob(pieces, { type })) });
}

function addToResponse(frontend: PlaygroundFrontend, parts: ResponseParts, event: any): void {
  if (typeof event !== "object" || event === null) return;
  const { error, usage, usageMetadata, meta, message, response } = event;
  if (error) parts.error = error.message ?? JSON.stringify(error);
  frontend.addEvent(parts, event);
  parts.usage =
    usage ??
    usageMetadata ??
    meta?.billed_units ??
    message?.usage ??
    response?.usage ??
    parts.usage;
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
