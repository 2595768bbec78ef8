// Sends a command with an admin token to the control socket.
import { request } from "node:http";
import { findControlSocket } from "../../src/admin/socket/control-socket-path.ts";
import type { JsonObject } from "../../src/model/values.ts";

export async function runSocketCommand(
  stateDir: string,
  command: string,
  token: string,
  input: JsonObject = {},
): Promise<{ status: number; body: any }> {
  const socketPath = await findControlSocket(stateDir);
  return new Promise((resolve, reject) => {
    const path = `/${encodeURIComponent(command)}`;
    const headers = { authorization: `Bearer ${token}` };
    const req = request({ socketPath, path, method: "POST", agent: false, headers }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("end", () =>
        resolve({ status: res.statusCode!, body: JSON.parse(Buffer.concat(chunks).toString()) }),
      );
    });
    req.on("error", reject);
    req.end(JSON.stringify(input));
  });
}
