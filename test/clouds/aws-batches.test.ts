// Requests of Bedrock's batches: AWS's own signer signs requests to S3 in the same way, with a body
// that is created while it is sent, and an API key is not sent to S3.
import { expect, it } from "vitest";
import type { ProtocolEndpoint, Provider, TokenAuth } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import aws from "../../plugins/providers/aws/index.ts";
import { signRequest } from "../../plugins/providers/aws/signer.ts";
import { officially } from "./aws-fake.ts";

const KEYS = { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token: "t1" };

it.each([
  ["PUT", "https://s3.eu-central-1.amazonaws.com/my-bucket/tollgate/a%20b/lines.jsonl"],
  [
    "GET",
    "https://s3.eu-central-1.amazonaws.com/my-bucket/results/x+y/lines.jsonl.out?versionId=a",
  ],
  ["DELETE", "https://s3.eu-central-1.amazonaws.com/my-bucket/m%C3%BCll"],
])("signs %s requests to S3 as AWS does", async (method, address) => {
  const url = new URL(address);
  const now = new Date("2026-11-29T12:00:00Z");
  const of = { region: "eu-central-1", service: "s3" };
  const headers: Record<string, string> =
    method === "PUT" ? { "content-type": "application/jsonl" } : {};
  const own = signRequest(
    KEYS,
    { method, url, headers, body: null },
    { ...of, now: now.getTime() },
  );
  const theirs = await officially(KEYS, {
    ...of,
    method,
    url,
    headers: { ...headers, host: url.host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD" },
    body: Buffer.alloc(0),
    now,
  });
  expect(own["authorization"]!.replaceAll(", ", ",")).toBe(
    theirs["authorization"]!.replaceAll(", ", ","),
  );
  expect(own["x-amz-content-sha256"]).toBe("UNSIGNED-PAYLOAD");
});

it("signs with the service of the address, and sends no API key to S3", async () => {
  const options = {
    region: "eu-central-1",
    claude: [],
    openai: [],
    mantle: [],
    betas: [],
    list_models: false,
    mantle_service: "bedrock-mantle",
    batch_uri: "s3://my-bucket/tollgate",
    batch_role: "arn:aws:iam::123456789012:role/batch",
  };
  const { endpoints } = (await aws.setup(
    options as never,
    createTestContext({}).ctx,
  )) as unknown as Provider;
  const endpoint = endpoints[0] as ProtocolEndpoint;
  const auth = endpoint.auth as TokenAuth<object>;
  const sign = async (url: string, credential: object) =>
    auth.sign(
      {
        method: "GET",
        url: new URL(url),
        headers: {},
        body: null,
        signal: new AbortController().signal,
      },
      credential,
    );
  const keys = { access_key_id: "AKID", secret_access_key: "secret" };
  const [storage, control] = endpoint.batches!.origins!.toReversed() as [string, string];
  expect((await sign(`${storage}/my-bucket/x`, keys))["authorization"]).toContain(
    "/s3/aws4_request",
  );
  expect((await sign(`${control}/model-invocation-jobs`, keys))["authorization"]).toContain(
    "/bedrock/aws4_request",
  );
  expect((await sign(`${control}/x`, { api_key: "k" }))["authorization"]).toBe("Bearer k");
  await expect(sign(`${storage}/my-bucket/x`, { api_key: "k" })).rejects.toThrow("access keys");
});
