package amd

import (
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// torchDevicesKind is the answer of PyTorch to the question whether it sees
// GPUs, as people paste it: the call, and the value in the next line.
var torchDevicesKind = &parse.Kind{
	Name: "torch-devices", Title: "whether PyTorch sees GPUs", Command: `python -c "import torch; print(torch.cuda.is_available())"`, Gives: []string{"logs"},
	Anchors: []string{"torch.cuda.is_available()", "torch.cuda.device_count()"}, Commands: []string{"python", "python3"},
	Begins: func(in *parse.Lines) bool {
		question, _ := torchDevicesAsked(in)
		return question != ""
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		question, isAbove := torchDevicesAsked(in)
		if !isAbove {
			in.Next()
		}
		l, _ := in.Next()
		switch value := torchDevicesValue.FindStringSubmatch(l.Text)[1]; {
		case question == "device_count" && value != "True" && value != "False":
			s.Message("torch-gpu-count", map[string]string{"count": value}, l)
			if value == "0" {
				s.Message("torch-sees-no-gpu", nil, l)
			}
		case question == "is_available" && value == "False":
			s.Message("torch-sees-no-gpu", nil, l)
		case question == "is_available" && value == "True":
			s.Message("torch-sees-gpu", nil, l)
		}
	},
}

// torchDevicesAsked is the question whose answer is the next line, or that behind it; isAbove is true if a command asked it.
func torchDevicesAsked(in *parse.Lines) (question string, isAbove bool) {
	code, answers := in.First().Text, in.Ahead(2)[1:]
	if isAbove = in.After("python", "python3"); isAbove {
		code, answers = in.Prompt().Command, in.Ahead(1)
	}
	if len(answers) == 0 || !torchDevicesValue.MatchString(answers[0].Text) {
		return "", isAbove
	}
	return torchDevicesQuestion.First(code), isAbove
}

// torchDevicesValue is what Python prints, alone in its line.
var torchDevicesValue = lazy.New(`^\s*(True|False|\d{1,3})\s*$`)

// torchDevicesQuestion is the last thing that a line of code asks for.
var torchDevicesQuestion = lazy.New(`.*torch\.cuda\.(is_available|device_count)\(\)`)
