// Compares gateways with and without scopes. Both get the same headers, so only the counters differ.
import { tollgate, type Target } from "../targets.ts";

export const NO_SCOPE = "no scope";
export const THREE_SCOPES = "three scopes";

const SCOPES = `{
  session: { from: [session], limits: [usd=1000000/total, requests=1000000000/total] },
  agent: { from: [agent], limits: [requests=1000000000/day] },
  end_user: { from: ["header:x-end-user"], limits: [usd=1000000/day] } }`;

const HEADERS = {
  "x-claude-code-session-id": "6f1c2d1e-0b7a-4c55-9a51-2f6f3c1f8a77",
  "x-claude-code-agent-id": "3b9f1f6c-5a0e-4d4e-8d5e-0b8f0c1d2e3f",
  "x-end-user": "someone@example.com",
};

/** Cost of a request that three scopes count, compared with a request that none counts. */
export const withScopes = async (mock: number): Promise<readonly Target[]> => {
  const without = await tollgate(mock, { name: NO_SCOPE, priced: true });
  const scoped = await tollgate(mock, { name: THREE_SCOPES, priced: true, scopes: SCOPES });
  return [without, scoped].map((target) => ({
    ...target,
    headers: { ...target.headers, ...HEADERS },
  }));
};
