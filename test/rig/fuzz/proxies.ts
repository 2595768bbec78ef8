// nginx and HAProxy in front of the gateway, if installed.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../kit/process/ports.ts";

export interface Proxy extends AsyncDisposable {
  readonly name: string;
  readonly port: number;
}

interface Program {
  readonly name: string;
  readonly program: string;
  readonly args: (file: string, dir: string) => readonly string[];
  readonly config: (of: { dir: string; port: number; to: number }) => string;
}

const PROGRAMS: readonly Program[] = [
  {
    name: "nginx",
    program: "/usr/sbin/nginx",
    args: (file, dir) => ["-c", file, "-p", dir, "-e", join(dir, "error.log")],
    config: ({ dir, port, to }) => `
daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error.log;
events { worker_connections 256; }
http {
  access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
  upstream gateway { server 127.0.0.1:${to}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_set_header Connection ""; proxy_set_header Host localhost; proxy_set_header x-proxied nginx;
    }
  }
}`,
  },
  {
    name: "haproxy",
    program: "/usr/sbin/haproxy",
    args: (file) => ["-db", "-q", "-f", file],
    config: ({ port, to }) => `
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
  http-reuse always
frontend in
  bind 127.0.0.1:${port}
  default_backend gateway
backend gateway
  http-request set-header x-proxied haproxy
  http-request set-header host localhost
  server one 127.0.0.1:${to}
`,
  },
];

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });

/** Those that are installed and start. Others are reported. */
export async function proxies(to: number, say: (line: string) => void): Promise<Proxy[]> {
  const up: Proxy[] = [];
  for (const each of PROGRAMS) {
    const proxy = await started(each, to);
    if (proxy) up.push(proxy);
    else say(`${each.name} is not here: its part of the table is skipped`);
  }
  return up;
}

async function started(
  { name, program, args, config }: Program,
  to: number,
): Promise<Proxy | undefined> {
  const dir = await mkdtemp(join(tmpdir(), `tollgate-${name}-`));
  const port = await freePort();
  const file = join(dir, "config");
  await writeFile(file, config({ dir, port, to }));
  const child = spawn(program, args(file, dir), { stdio: "ignore" });
  let gone = false;
  child.once("error", () => (gone = true)).once("exit", () => (gone = true));
  const end = async () => {
    child.kill("SIGKILL");
    await rm(dir, { recursive: true, force: true });
  };
  for (let i = 0; i < 100 && !gone; i++) {
    if (await answers(port)) return { name, port, [Symbol.asyncDispose]: end };
    await sleep(50);
  }
  await end();
  return undefined;
}
