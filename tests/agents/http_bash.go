// A plain program on Go's net/http with a tool `bash`: http_bash MODEL PROMPT.
//
// It works until the model calls no tool, and prints its last words. A request that is refused with
// 429 is sent again, three times at most.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"
)

const endpoint = "https://api.openai.com/v1/chat/completions"

const tools = `[{"type": "function", "function": {
	"name": "bash",
	"description": "Run a command in a shell.",
	"parameters": {
		"type": "object",
		"properties": {"command": {"type": "string"}},
		"required": ["command"]
	}
}}]`

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type message struct {
	Role       string  `json:"role"`
	Content    *string `json:"content"`
	ToolCalls  []call  `json:"tool_calls,omitempty"`
	ToolCallID string  `json:"tool_call_id,omitempty"`
}

func bash(command string) string {
	shell := exec.Command("sh", "-c", command)
	output, err := shell.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		panic(err)
	}
	result, _ := json.Marshal(map[string]any{
		"returncode": shell.ProcessState.ExitCode(), "output": string(output),
	})
	return string(result)
}

func send(body []byte) (*http.Response, error) {
	request, err := http.NewRequest("POST", endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(request)
}

func ask(model string, messages []message) (message, error) {
	body, err := json.Marshal(map[string]any{
		"model": model, "messages": messages, "tools": json.RawMessage(tools),
	})
	if err != nil {
		return message{}, err
	}
	response, err := send(body)
	for again := 0; err == nil && response.StatusCode == 429 && again < 3; again++ {
		response.Body.Close()
		time.Sleep(100 * time.Millisecond)
		response, err = send(body)
	}
	if err != nil {
		return message{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		return message{}, errors.New(response.Status)
	}
	var answer struct{ Choices []struct{ Message message } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return message{}, err
	}
	return answer.Choices[0].Message, nil
}

func run(calls []call) []message {
	results := make([]message, len(calls))
	var all sync.WaitGroup
	for nth, asked := range calls {
		all.Go(func() {
			var given struct{ Command string }
			if err := json.Unmarshal([]byte(asked.Function.Arguments), &given); err != nil {
				panic(err)
			}
			output := bash(given.Command)
			results[nth] = message{Role: "tool", ToolCallID: asked.ID, Content: &output}
		})
	}
	all.Wait()
	return results
}

func main() {
	model, prompt := os.Args[1], os.Args[2]
	messages := []message{{Role: "user", Content: &prompt}}
	for {
		said, err := ask(model, messages)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if len(said.ToolCalls) == 0 {
			fmt.Println(*said.Content)
			return
		}
		messages = append(append(messages, said), run(said.ToolCalls)...)
	}
}
