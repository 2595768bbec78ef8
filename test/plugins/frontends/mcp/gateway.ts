// A gateway with the frontend `mcp` and fake servers behind it, for one test at a time.
import { onTestFinished } from "vitest";
import { digestKey, mintKey } from "../../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../../kit/in-process.ts";
import type { McpAnswer } from "./client.ts";
import { startFakeServer, type FakeServer, type FakeServerOptions } from "./fake-server.ts";

/** Keys of the gateway: `all` may call every tool, and `some` may call `one/echo`. */
export const [all, some] = [mintKey().secret, mintKey().secret];

/** Starts a gateway. It ends with the test. */
export async function start(
  servers: Readonly<Record<string, FakeServerOptions>>,
  more: {
    readonly options?: object;
    readonly server?: Readonly<Record<string, object>>;
    readonly keys?: string;
    readonly middleware?: string;
    /** Further lines of gateway.yaml. */
    readonly yaml?: string;
  } = {},
): Promise<{ gateway: InProcessGateway; servers: Record<string, FakeServer>; url: string }> {
  // Hooks of this file would run only for the first test file of a process.
  const disposables = new AsyncDisposableStack();
  onTestFinished(() => disposables.disposeAsync());
  const started: Record<string, FakeServer> = {};
  for (const [name, options] of Object.entries(servers))
    started[name] = disposables.use(await startFakeServer(options));
  const options = {
    servers: Object.fromEntries(
      Object.entries(started).map(([name, { url }]) => [name, { url, ...more.server?.[name] }]),
    ),
    ...more.options,
  };
  const gateway = disposables.use(
    await startInProcess({
      yaml: `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
providers: { demo: { use: demo } }
middleware:${more.middleware ?? ""}
  - use: auth
    with:
      keys:
        - { id: all, digest: ${digestKey(all)} }
        - { id: some, digest: ${digestKey(some)}${more.keys ?? ', tools: ["one/echo"]'} }
${more.yaml ?? ""}`,
    }),
  );
  return { gateway, servers: started, url: `${gateway.url}/mcp` };
}

export const namesOf = ({ result }: McpAnswer): string[] =>
  ((result ?? {})["tools"] as { name: string }[]).map(({ name }) => name);
export const textOf = ({ result, error }: McpAnswer): string =>
  result ? (result["content"] as { text: string }[])[0]!.text : `${error?.code}: ${error?.message}`;
