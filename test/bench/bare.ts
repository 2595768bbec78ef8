// Cost of a proxy that does nothing: the two yardsticks.
//     bare.ts agent <port>       node:http and its keep-alive Agent
//     bare.ts dispatch <port>    node:http and undici's dispatch; JSON responses are sent as one buffer
import { Agent, createServer, request, type ServerResponse } from "node:http";
import { Pool, type Dispatcher } from "undici";

const [way, upstream] = process.argv.slice(2);
const port = Number(upstream);

type Forward = (path: string, type: string, body: Buffer, res: ServerResponse) => void;

function byAgent(): Forward {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  return (path, type, body, res) => {
    const headers = { "content-type": type, "content-length": body.length };
    const up = request(
      { agent, port, host: "127.0.0.1", path, method: "POST", headers },
      (answer) => {
        res.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(res);
      },
    );
    up.on("error", () => res.destroy());
    res.on("close", () => res.writableFinished || up.destroy());
    up.end(body);
  };
}

function byDispatch(): Forward {
  const pool = new Pool(`http://127.0.0.1:${port}`, {
    connections: null,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return (path, type, body, res) => {
    let controller: Dispatcher.DispatchController | undefined;
    const chunks: Buffer[] = [];
    let streams = false;
    pool.dispatch(
      { path, method: "POST", headers: ["content-type", type], body },
      {
        onRequestStart: (c) => void (controller = c),
        onResponseStart(_c, status, headers) {
          const kind = String(headers["content-type"]);
          streams = kind.startsWith("text/event-stream");
          if (streams) res.writeHead(status, ["content-type", kind]);
        },
        onResponseData(c, chunk) {
          if (!streams) return void chunks.push(chunk);
          if (res.write(chunk)) return;
          c.pause();
          res.once("drain", () => c.resume());
        },
        onResponseEnd() {
          if (streams) return void res.end();
          const whole = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
          res.writeHead(200, ["content-type", "application/json", "content-length", whole.length]);
          res.end(whole);
        },
        onResponseError: () => void res.destroy(),
      },
    );
    res.on("close", () => res.writableFinished || controller?.abort(new Error("gone")));
  };
}

const forward = way === "agent" ? byAgent() : byDispatch();
const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    forward(req.url!, req.headers["content-type"] ?? "application/json", body, res);
  });
});
server.listen(0, "127.0.0.1", () =>
  process.send!({ port: (server.address() as { port: number }).port }),
);
process.on("disconnect", () => process.exit());
