// One question of the playground, from its sending to its end: what came is told as it comes.
import { OURS, read, Refusal } from "../ask.ts";
import { BASE } from "../place.ts";
import {
  type Draft,
  type Frontend,
  type Heard,
  isForm,
  nothing,
  type Words,
} from "./playground-frontend.ts";

export interface Sent {
  readonly heard: Heard;
  /** What a rank is of: those that were sent. */
  readonly documents: string;
  /** As it came. */
  readonly raw: string;
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since it was sent. */
  readonly first: number | undefined;
  readonly ended: number | undefined;
  readonly problem: Refusal | undefined;
}

interface Question {
  readonly frontend: Frontend;
  readonly draft: Draft;
  readonly key: string;
  readonly zdr: string;
}

const EMPTY = {
  raw: "",
  status: undefined,
  headers: {},
  first: undefined,
  ended: undefined,
  problem: undefined,
} as const;

export async function send(
  { frontend, draft, key, zdr }: Question,
  told: (sent: Sent) => void,
  over: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const since = () => performance.now() - began;
  let sent: Sent = { ...EMPTY, heard: nothing(), documents: draft.documents };
  const say = (part: Partial<Sent>) => told((sent = { ...sent, ...part }));
  say({});
  try {
    const answer = await fetch(`${BASE}/ask`, {
      method: "POST",
      headers: OURS,
      credentials: "same-origin",
      body: JSON.stringify({
        path: frontend.path(draft),
        as: frontend.as,
        key,
        ...(await packed(frontend.body(draft))),
        ...(zdr && { zdr }),
      }),
      signal: over,
    });
    if (!answer.ok) await read(answer);
    const head = JSON.parse(answer.headers.get("x-answer") ?? "{}") as {
      status: number;
      type: string | null;
      headers: Record<string, string>;
    };
    say({
      status: head.status,
      headers: { ...(head.type && { "content-type": head.type }), ...head.headers },
    });
    const type = head.type ?? "";
    const taken = type.startsWith("audio/")
      ? sound
      : type.startsWith("text/event-stream")
        ? events
        : whole;
    await taken({ answer, type, frontend }, (raw, heard) =>
      say({ raw, heard, first: sent.first ?? since() }),
    );
    say({ ended: since() });
  } catch (error) {
    if (over.aborted) return say({ ended: since() });
    const problem =
      error instanceof Refusal
        ? error
        : new Refusal(0, { message: "The answer broke off.", hint: `${error}` });
    say({ problem });
  }
}

/** As the gateway's own page takes it: JSON's text, or a form's bytes with the type that says where its parts end. */
async function packed(body: Words): Promise<{ body: string; form?: string }> {
  if (!isForm(body)) return { body: JSON.stringify(body) };
  const form = new FormData();
  for (const [name, value] of Object.entries(body))
    form.append(name, value instanceof File ? value : `${value}`);
  const made = new Response(form);
  const type = made.headers.get("content-type")!;
  const address = await dataAddress(await made.blob());
  return { form: type, body: address.slice(address.indexOf(",") + 1) };
}

/** "data:image/png;base64,…" */
export const dataAddress = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result as string));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("not read")));
    reader.readAsDataURL(file);
  });

interface Coming {
  readonly answer: Response;
  readonly type: string;
  readonly frontend: Frontend;
}
type Told = (raw: string, heard: Heard) => void;

async function each(
  answer: Response,
  take: (piece: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const reader = answer.body!.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
}

async function events({ answer, frontend }: Coming, told: Told): Promise<void> {
  const text = new TextDecoder();
  const heard = nothing();
  let raw = "";
  let at = 0;
  await each(answer, (piece) => {
    raw += text.decode(piece, { stream: true });
    for (let end = raw.indexOf("\n", at); end >= 0; end = raw.indexOf("\n", at)) {
      const line = raw.slice(at, end).trimEnd();
      at = end + 1;
      if (line.startsWith("data:")) hear(frontend, heard, parsed(line.slice(5)));
    }
    told(raw, { ...heard });
  });
  told(raw, { ...heard });
}

async function whole({ answer, frontend }: Coming, told: Told): Promise<void> {
  const text = new TextDecoder();
  const heard = nothing();
  let raw = "";
  await each(answer, (piece) => told((raw += text.decode(piece, { stream: true })), { ...heard }));
  hear(frontend, heard, parsed(raw));
  told(raw, { ...heard });
}

/** What is said in place of bytes. */
async function sound({ answer, type }: Coming, told: Told): Promise<void> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const raw = () => `${type}, ${bytes} bytes`;
  await each(answer, (piece) => {
    bytes += piece.length;
    pieces.push(piece);
    told(raw(), nothing());
  });
  told(raw(), { ...nothing(), sound: await dataAddress(new Blob(pieces, { type })) });
}

function hear(frontend: Frontend, heard: Heard, event: any): void {
  if (typeof event !== "object" || event === null) return;
  const { error, usage, usageMetadata, meta, message, response } = event;
  if (error) heard.error = error.message ?? JSON.stringify(error);
  frontend.hear(heard, event);
  heard.usage =
    usage ??
    usageMetadata ??
    meta?.billed_units ??
    message?.usage ??
    response?.usage ??
    heard.usage;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
