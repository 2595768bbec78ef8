// The official Python SDK in front of servers of each revision: the newest version in both eras, and
// one that is a year older. Prints what each combination did.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import {
  startFakeServer,
  type FakeServerOptions,
} from "../../plugins/frontends/mcp/fake-server.ts";
import { pythonWith } from "./example-servers.ts";

const { CI, CLIENTS } = process.env;
const canRun = CI !== undefined || CLIENTS !== undefined;
const SCRIPT = join(import.meta.dirname, "mcp_client.py");
const { secret } = mintKey();
const report: string[] = [];

const CLIENTS_OF_PYTHON = [
  { version: "2.3.0", era: "stateless", revision: "2026-07-28" },
  { version: "2.3.0", era: "session", revision: "2025-11-25" },
  { version: "1.22.0", era: "session", revision: "2025-06-18" },
];
const REVISIONS: readonly FakeServerOptions["revision"][] = [
  "2026-07-28",
  "2025-11-25",
  "2025-03-26",
];

afterAll(() => console.log(report.join("\n")));

describe.skipIf(!canRun).each(CLIENTS_OF_PYTHON)(
  "mcp $version, $era",
  ({ version, era, revision }) => {
    it.each(REVISIONS)(
      "calls a tool of a server in %s",
      async (server) => {
        const python = await pythonWith(version);
        await using one = await startFakeServer({ revision: server });
        const options = { servers: { one: { url: one.url } } };
        await using gateway = await startInProcess({
          yaml: `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
store: memory
middleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)} }] } }]
providers: { demo: { use: demo } }
`,
        });
        const call = ["echo", '{"message":"hi"}'];
        const args = [SCRIPT, `${gateway.url}/mcp/one`, secret, era, ...call];
        const { stdout } = await promisify(execFile)(python, args, { timeout: 120_000 });
        expect(JSON.parse(stdout)).toEqual({
          revision,
          tools: ["echo"],
          text: '{"message":"hi"}',
        });
        report.push(`python mcp ${version} | ${revision} | server ${server}`);
      },
      900_000,
    );
  },
);
