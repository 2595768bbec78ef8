// A port in which connections vanish: it listens and accepts none, because its process is stopped.
import { createServer } from "node:net";

const server = createServer();
server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
  process.stdout.write(`${server.address().port}\n`, () => process.kill(process.pid, "SIGSTOP"));
});
