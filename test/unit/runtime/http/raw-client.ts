// A client that sends exactly the given bytes.
import { connect, type Socket } from "node:net";

export interface RawClient {
  readonly socket: Socket;
  send(text: string | Buffer): void;
  /** Data received so far. */
  readonly text: string;
  /** Whether the other side has closed. */
  readonly isClosed: boolean;
  /** Whether no more data can be sent either. */
  readonly isGone: boolean;
  until(what: RegExp): Promise<string>;
  /** All data until the other side closed. */
  closed(): Promise<string>;
}

export async function dial(port: number, host = "127.0.0.1"): Promise<RawClient> {
  const socket = connect({ port, host, allowHalfOpen: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  let text = "";
  let ended = false;
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const check of waiting) check();
  };
  const over = () => {
    ended = true;
    wake();
  };
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    wake();
  });
  let gone = false;
  const left = () => {
    gone = true;
    over();
  };
  socket.on("error", left);
  socket.on("end", over);
  socket.on("close", left);
  const when = (ready: () => boolean) =>
    new Promise<string>((resolve, reject) => {
      const check = () => {
        if (ready()) resolve(text);
        else if (ended) reject(new Error(`closed, having said: ${text.slice(0, 500)}`));
        else return;
        waiting.delete(check);
      };
      waiting.add(check);
      check();
    });
  return {
    socket,
    send: (data) => void socket.write(data),
    get text() {
      return text;
    },
    get isClosed() {
      return ended;
    },
    get isGone() {
      return gone;
    },
    until: (what) => when(() => what.test(text)),
    closed: () => when(() => ended),
  };
}

/** One connection, one text, and the whole response. */
export async function say(port: number, text: string, host?: string): Promise<string> {
  const client = await dial(port, host);
  client.send(text);
  const answer = await client.closed();
  client.socket.destroy();
  return answer;
}
