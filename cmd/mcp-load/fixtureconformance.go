package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// registerConformance registers what the official conformance suite calls. The
// suite calls the first tool without arguments and reads the first resource, so
// both stand for something that always works.
func registerConformance(e *engine.Engine, features map[string]bool) error {
	var errs []error
	for _, part := range []struct {
		feature  string
		register func(*engine.Engine) []error
	}{
		{"tools", conformanceContents},
		{"tools", conformanceUtilities},
		{"tools", conformanceSession},
		{"tools", conformanceStateless},
		{"tools", conformanceRounds},
		{"tools", conformanceTasks},
		{"resources", conformanceResources},
		{"prompts", conformancePrompts},
	} {
		if features[part.feature] {
			errs = append(errs, part.register(e)...)
		}
	}
	return errors.Join(errs...)
}

// plainTool registers a tool without arguments.
func plainTool[Out any](e *engine.Engine, name, description string, an *engine.ToolAnnotations,
	h func(ctx context.Context, c *engine.Call) (Out, error),
) error {
	t := engine.Tool{Name: name, Description: description, Annotations: an}
	return engine.AddTool(e, t, func(ctx context.Context, c *engine.Call, _ noIn) (Out, error) { return h(ctx, c) })
}

// contentTool registers a tool that always answers with the same content.
func contentTool(e *engine.Engine, name, description string, content ...engine.Content) error {
	return plainTool(e, name, description, readOnly, func(context.Context, *engine.Call) (*engine.Result, error) {
		return &engine.Result{Content: content}, nil
	})
}

// conformanceContents are the tools that answer with each kind of content.
func conformanceContents(e *engine.Engine) []error {
	picture := engine.Image{Data: redPixel(), MIMEType: "image/png"}
	return []error{
		contentTool(e, "test_simple_text", "Answers with a text.",
			engine.Text{Text: "This is a simple text response for testing."}),
		contentTool(e, "test_image_content", "Answers with a picture of one pixel.", picture),
		contentTool(e, "test_audio_content", "Answers with a moment of silence.",
			engine.Audio{Data: silence(), MIMEType: "audio/wav"}),
		contentTool(e, "test_embedded_resource", "Answers with a text as an embedded resource.",
			engine.EmbeddedResource{Resource: engine.ResourceContents{
				URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
			}}),
		contentTool(e, "test_multiple_content_types", "Answers with a text, a picture and an embedded resource.",
			engine.Text{Text: "Multiple content types test:"}, picture,
			engine.EmbeddedResource{Resource: engine.ResourceContents{
				URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
			}}),
	}
}

// conformanceUtilities are the tools of both eras that do more than answer.
func conformanceUtilities(e *engine.Engine) []error {
	return []error{
		plainTool(e, "test_error_handling", "Fails, as a tool does that cannot do what it was asked.", readOnly,
			func(context.Context, *engine.Call) (string, error) {
				return "", errors.New("this tool intentionally returns an error for testing")
			}),
		plainTool(e, "test_tool_with_progress", "Reports progress three times.", readOnly,
			func(ctx context.Context, c *engine.Call) (string, error) {
				for _, percent := range []float64{0, 50, 100} {
					c.Progress(ctx, percent, 100)
					if err := sleep(ctx, 50*time.Millisecond); err != nil {
						return "", err
					}
				}
				return "The work is done.", nil
			}),
		e.AddRawTool(engine.Tool{
			Name: "json_schema_2020_12_tool", Description: "Takes arguments that need JSON Schema 2020-12 to describe.",
			InputSchema: schema202012, Annotations: readOnly,
		}, func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, append([]byte("Valid arguments: "), args...)), nil
		}),
	}
}

// schema202012 uses what tools lose that rewrite schemas.
var schema202012 = json.RawMessage(`{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`)

func conformanceResources(e *engine.Engine) []error {
	fixed := func(uri, name, description, mime string, contents engine.ResourceContents) error {
		return e.AddResource(engine.Resource{URI: uri, Name: name, Description: description, MIMEType: mime},
			func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
				return []engine.ResourceContents{contents}, nil
			})
	}
	return []error{
		fixed("test://static-text", "static text", "A text that does not change.", "text/plain",
			engine.ResourceContents{Text: "This is the content of the static text resource."}),
		fixed("test://static-binary", "static binary", "A picture that does not change.", "image/png",
			engine.ResourceContents{Blob: redPixel()}),
		fixed("test://watched-resource", "watched resource", "A text to subscribe to.", "text/plain",
			engine.ResourceContents{Text: "Watched resource content"}),
		e.AddResourceTemplate(engine.ResourceTemplate{
			URITemplate: "test://template/{id}/data", Name: "data", Description: "Data by its id.", MIMEType: "application/json",
		}, func(_ context.Context, _ *engine.Call, _ string, vars map[string]string) ([]engine.ResourceContents, error) {
			text := codec.AppendString([]byte(`{"templateTest":true,"id":`), vars["id"])
			return []engine.ResourceContents{{Text: string(text) + "}"}}, nil
		}),
	}
}

func conformancePrompts(e *engine.Engine) []error {
	user := func(content engine.Content) engine.PromptMessage {
		return engine.PromptMessage{Role: "user", Content: content}
	}
	prompt := func(p engine.Prompt, messages func(args map[string]string) []engine.PromptMessage) error {
		return e.AddPrompt(p, func(_ context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
			return &engine.PromptResult{Messages: messages(args)}, nil
		})
	}
	return []error{
		prompt(engine.Prompt{Name: "test_simple_prompt", Description: "A prompt without arguments."},
			func(map[string]string) []engine.PromptMessage {
				return []engine.PromptMessage{user(engine.Text{Text: "This is a simple prompt for testing."})}
			}),
		prompt(engine.Prompt{
			Name: "test_prompt_with_arguments", Description: "A prompt with two arguments.", Complete: completeWord,
			Arguments: []engine.PromptArgument{
				{Name: "arg1", Description: "the first argument", Required: true},
				{Name: "arg2", Description: "the second argument", Required: true},
			},
		}, func(args map[string]string) []engine.PromptMessage {
			return []engine.PromptMessage{user(engine.Text{
				Text: "Prompt with arguments: arg1='" + args["arg1"] + "', arg2='" + args["arg2"] + "'",
			})}
		}),
		prompt(engine.Prompt{
			Name: "test_prompt_with_embedded_resource", Description: "A prompt that embeds a resource.",
			Arguments: []engine.PromptArgument{{Name: "resourceUri", Description: "the resource's URI", Required: true}},
		}, func(args map[string]string) []engine.PromptMessage {
			return []engine.PromptMessage{
				user(engine.EmbeddedResource{Resource: engine.ResourceContents{
					URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing.",
				}}),
				user(engine.Text{Text: "Please process the embedded resource above."}),
			}
		}),
		prompt(engine.Prompt{Name: "test_prompt_with_image", Description: "A prompt with a picture."},
			func(map[string]string) []engine.PromptMessage {
				return []engine.PromptMessage{
					user(engine.Image{Data: redPixel(), MIMEType: "image/png"}),
					user(engine.Text{Text: "Please analyze the image above."}),
				}
			}),
	}
}

// completeWord completes an argument from a few words.
func completeWord(_ context.Context, _ *engine.Call, _, value string, _ map[string]string) (engine.Completion, error) {
	var c engine.Completion
	for _, word := range []string{"test", "testing", "testValue1", "testValue2"} {
		if strings.HasPrefix(word, value) {
			c.Values = append(c.Values, word)
		}
	}
	return c, nil
}

// redPixel is a PNG of one pixel.
func redPixel() []byte {
	picture := image.NewRGBA(image.Rect(0, 0, 1, 1))
	picture.Set(0, 0, color.RGBA{R: 0xff, A: 0xff})
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // a buffer takes everything
	return b.Bytes()
}

// silence is a WAV of eight samples: 16 bit, one channel, 8 kHz.
func silence() []byte {
	const rate, sampleBytes, samples = 8000, 2, 8
	b := append([]byte(nil), "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, 36+samples*sampleBytes)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // PCM
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*sampleBytes)
	b = binary.LittleEndian.AppendUint16(b, sampleBytes)
	b = binary.LittleEndian.AppendUint16(b, 8*sampleBytes)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, samples*sampleBytes)
	return append(b, make([]byte, samples*sampleBytes)...)
}
