// The package's own tests, as its author plays them.
await import("../../examples/packages/observer-webhook/test/webhook.test.ts");
