// One question of the playground, from its sending to its end: what came is told as it comes.
import { OURS, read, Refusal } from "../ask.ts";
import { BASE } from "../place.ts";
import {
  headerOf,
  hear,
  type Heard,
  nothing,
  PROTOCOLS,
  type ProtocolName,
} from "./playground-wire.ts";

export interface Sent {
  readonly heard: Heard;
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
  readonly protocol: ProtocolName;
  readonly body: object;
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
  { protocol, body, key, zdr }: Question,
  told: (sent: Sent) => void,
  over: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const since = () => performance.now() - began;
  let sent: Sent = { ...EMPTY, heard: nothing() };
  const say = (part: Partial<Sent>) => told((sent = { ...sent, ...part }));
  say({});
  try {
    const answer = await fetch(`${BASE}/ask`, {
      method: "POST",
      headers: OURS,
      credentials: "same-origin",
      body: JSON.stringify({
        path: PROTOCOLS[protocol].path,
        as: headerOf(protocol),
        key,
        body: JSON.stringify(body),
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
    const streams = (head.type ?? "").startsWith("text/event-stream");
    await taken(answer, streams, (raw, heard) => say({ raw, heard, first: sent.first ?? since() }));
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

async function taken(
  answer: Response,
  streams: boolean,
  told: (raw: string, heard: Heard) => void,
): Promise<void> {
  const text = new TextDecoder();
  let raw = "";
  let read = 0;
  let heard = nothing();
  const reader = answer.body!.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    raw += text.decode(next.value, { stream: true });
    if (streams) read = events(raw, read, heard);
    told(raw, (heard = { ...heard }));
  }
  if (!streams) hear(heard, parsed(raw));
  told(raw, { ...heard });
}

/** What has come whole from `from` on; where the rest begins. */
function events(raw: string, from: number, heard: Heard): number {
  let at = from;
  for (let end = raw.indexOf("\n", at); end >= 0; end = raw.indexOf("\n", at)) {
    const line = raw.slice(at, end).trimEnd();
    at = end + 1;
    if (line.startsWith("data:")) hear(heard, parsed(line.slice(5)));
  }
  return at;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
