// A minimal load balancer: it checks /readyz of each gateway at an interval, sends each request to
// the next ready one, reuses its connections, and never sends a request twice.
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface Backend {
  url: string;
  key: string;
  ready: boolean;
}

export interface Balancer extends AsyncDisposable {
  readonly url: string;
}

export async function startBalancer(
  backends: readonly Backend[],
  pollMs: number,
): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true });
  let next = 0;
  const poll = () => {
    for (const backend of backends) void isReady(backend).then((ready) => (backend.ready = ready));
  };
  const polling = setInterval(poll, pollMs);
  const server = createServer((req, res) => {
    const ready = backends.filter((each) => each.ready);
    const to = ready[next++ % ready.length];
    if (!to) return void res.writeHead(503).end("no gateway is ready");
    const headers = { ...req.headers, authorization: `Bearer ${to.key}` };
    delete headers.connection;
    const out = request(`${to.url}${req.url}`, { agent, method: req.method, headers }, (answer) => {
      res.writeHead(answer.statusCode!, { "content-type": answer.headers["content-type"] });
      answer.pipe(res);
      answer.on("error", () => res.destroy());
    });
    out.on("error", (error) => {
      if (res.headersSent) res.destroy();
      else res.writeHead(502).end(error.message);
    });
    return void req.pipe(out);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await Promise.all(backends.map(async (each) => (each.ready = await isReady(each))));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      clearInterval(polling);
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}

const isReady = ({ url }: Backend): Promise<boolean> =>
  fetch(`${url}/readyz`, { headers: { connection: "close" } }).then(
    (res) => res.ok,
    () => false,
  );
