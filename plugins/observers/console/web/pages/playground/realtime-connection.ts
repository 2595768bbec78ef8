// One connection to the Realtime API, for the playground. The console relays it: messages arrive as
// lines of a streamed response, and the page sends its own as requests, in order.
import { REQUEST_HEADERS, readResponse, CommandError } from "../../admin-client.ts";
import { BASE_PATH } from "../../location.ts";

export interface RealtimeEvents {
  onOpen(): void;
  onEvent(event: RealtimeEvent): void;
  /** Called once, unless the page closed the connection. */
  onEnd(problem: CommandError | undefined): void;
}

/** An event of the Realtime API. Unknown members are ignored. */
export interface RealtimeEvent {
  readonly type: string;
  readonly [member: string]: any;
}

type Line =
  | { readonly type: "open"; readonly id: string }
  | { readonly type: "message"; readonly message: string }
  | { readonly type: "closed"; readonly code: number; readonly reason: string }
  | { readonly type: "rejected"; readonly message: string; readonly code?: string };

const NORMAL_CLOSURE = 1000;
/** Messages per request. */
const MAX_MESSAGES = 64;

export class RealtimeConnection {
  readonly #events: RealtimeEvents;
  readonly #over = new AbortController();
  #id = "";
  #waiting: string[] = [];
  #isSending = false;

  constructor(of: { model: string; key: string; zdr: string }, events: RealtimeEvents) {
    this.#events = events;
    void this.#run(of);
  }

  send(event: RealtimeEvent): void {
    this.#waiting.push(JSON.stringify(event));
    void this.#flush();
  }

  close(): void {
    this.#over.abort();
  }

  async #run({ model, key, zdr }: { model: string; key: string; zdr: string }): Promise<void> {
    let problem: CommandError | undefined;
    try {
      const answer = await fetch(`${BASE_PATH}/socket`, {
        method: "POST",
        headers: REQUEST_HEADERS,
        credentials: "same-origin",
        body: JSON.stringify({
          path: `/v1/realtime?model=${encodeURIComponent(model)}`,
          key,
          ...(zdr && { zdr }),
        }),
        signal: this.#over.signal,
      });
      if (!answer.ok) await readResponse(answer);
      problem = await this.#read(answer.body!.getReader());
    } catch (error) {
      if (this.#over.signal.aborted) return;
      problem =
        error instanceof CommandError
          ? error
          : new CommandError(0, { message: "The connection was lost.", hint: `${error}` });
    }
    this.#id = "";
    if (!this.#over.signal.aborted) this.#events.onEnd(problem);
  }

  /** Reads lines until the connection ends. Returns why, unless it ended normally. */
  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<CommandError | undefined> {
    const decoder = new TextDecoder();
    let rest = "";
    let problem: CommandError | undefined;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const lines = (rest + decoder.decode(next.value, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const text of lines) problem = this.#take(JSON.parse(text) as Line) ?? problem;
    }
    return problem;
  }

  #take(line: Line): CommandError | undefined {
    if (line.type === "open") {
      this.#id = line.id;
      this.#events.onOpen();
      void this.#flush();
    } else if (line.type === "message")
      this.#events.onEvent(JSON.parse(line.message) as RealtimeEvent);
    else if (line.type === "rejected")
      return new CommandError(0, { message: line.message, code: line.code ?? "" });
    else if (line.code !== NORMAL_CLOSURE)
      return new CommandError(0, {
        message: `The connection was closed with code ${line.code}.`,
        hint: line.reason,
      });
    return undefined;
  }

  /** Sends what waits, one request after the other, so that the order is kept. */
  async #flush(): Promise<void> {
    if (this.#isSending || this.#id === "") return;
    this.#isSending = true;
    while (this.#waiting.length > 0 && this.#id !== "" && !this.#over.signal.aborted) {
      const messages = this.#waiting.slice(0, MAX_MESSAGES);
      this.#waiting = this.#waiting.slice(MAX_MESSAGES);
      await fetch(`${BASE_PATH}/socket/send`, {
        method: "POST",
        headers: REQUEST_HEADERS,
        credentials: "same-origin",
        body: JSON.stringify({ id: this.#id, messages }),
        signal: this.#over.signal,
        // The stream reports the end of the connection.
      }).catch(() => {});
    }
    this.#isSending = false;
  }
}
