// The third yardstick: the lowest cost of a proxy in this language. It forwards bytes from socket to
// socket, and parses HTTP only to find the end of a message.
//     bare-net.ts <port>
import { connect, createServer, type Socket } from "node:net";

const upstream = Number(process.argv[2]);
const CRLF2 = Buffer.from("\r\n\r\n");
const LAST = Buffer.from("0\r\n\r\n");

/**
 * Finds the ends of messages on one side of a connection: by their length, or by the last chunk.
 */
class Message {
  #missing = 0;
  #chunked = false;
  #begun = false;
  #tail: Buffer = Buffer.alloc(0);

  /**
   * Whether a message ends with these bytes. With one request at a time, no message starts in the
   * middle of them.
   */
  ends(data: Buffer): boolean {
    let body = data;
    if (!this.#begun) {
      const end = data.indexOf(CRLF2);
      if (end < 0) throw new Error("a head in pieces");
      const head = data.toString("latin1", 0, end);
      this.#begun = true;
      this.#chunked = /transfer-encoding: *chunked/i.test(head);
      this.#missing = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      body = data.subarray(end + CRLF2.length);
    }
    if (this.#chunked) {
      this.#tail =
        body.length >= 5 ? body.subarray(-5) : Buffer.concat([this.#tail, body]).subarray(-5);
      this.#begun = !this.#tail.equals(LAST);
    } else this.#begun = (this.#missing -= body.length) > 0;
    return !this.#begun;
  }
}

interface Line {
  readonly socket: Socket;
  client: Socket | undefined;
}

const idle: Line[] = [];

function open(): Line {
  const socket = connect({ port: upstream, host: "127.0.0.1", noDelay: true });
  const line: Line = { socket, client: undefined };
  const answer = new Message();
  socket.on("data", (data) => {
    const { client } = line;
    if (!client) return void socket.destroy();
    const over = answer.ends(data);
    if (!client.write(data)) {
      socket.pause();
      client.once("drain", () => socket.resume());
    }
    if (!over) return;
    line.client = undefined;
    idle.push(line);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    line.client?.destroy();
    if (idle.includes(line)) idle.splice(idle.indexOf(line), 1);
  });
  return line;
}

const server = createServer({ noDelay: true }, (client) => {
  const request = new Message();
  let line: Line | undefined;
  let over = true;
  client.on("data", (data) => {
    if (!line || over) {
      line = idle.pop() ?? open();
      line.client = client;
    }
    line.socket.write(data);
    over = request.ends(data);
  });
  client.on("error", () => {});
  client.on("close", () => {
    if (line?.client === client) line.socket.destroy();
  });
});
server.listen(0, "127.0.0.1", () =>
  process.send!({ port: (server.address() as { port: number }).port }),
);
process.on("disconnect", () => process.exit());
