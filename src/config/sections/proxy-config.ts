// The `proxy` section: the HTTP proxy for calls to providers.
import type { ProxySettings } from "./network-config.ts";
import { problem } from "../problems.ts";
import { closedObject, list } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { isMapping } from "../source/config-tree.ts";

export const PROXY_SCHEMA = closedObject(
  {
    url: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description:
        "Its address, http:// or https://, with a name and a password where it asks for them",
    },
    bypass: list(
      {
        type: "string",
        pattern: "^[^\\s*]*\\*?[^\\s*]*$",
        minLength: 1,
        "x-expects": "a host such as llm.corp, with one star at most",
      },
      "Hosts that are reached straight, with one star each; this machine always is",
      { default: [] },
    ),
  },
  {
    required: ["url"],
    description: "An HTTP proxy that calls to providers go through; absent, they go straight",
  },
);

export function checkProxy(raw: unknown, report: ReportProblem): void {
  if (!isMapping(raw) || typeof raw["url"] !== "string") return;
  const url = URL.parse(raw["url"]);
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "")
    report(problem.badProxy(), "/proxy/url");
}

/** Returns the secrets in the proxy's URL: the password, as written and decoded. */
export function listProxySecrets(proxy: ProxySettings | undefined): readonly string[] {
  const url = proxy && URL.parse(proxy.url);
  if (!url || (url.username === "" && url.password === "")) return [];
  return [url.password, decodeURIComponent(url.password)].filter((text) => text.length > 3);
}
