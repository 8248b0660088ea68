package amd_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const rocminfoText = `ROCk module is loaded
=====================    
HSA System Attributes    
=====================    
Runtime Version:         1.14
System Timestamp Freq.:  1000.000000MHz
Mwaitx:                  DISABLED

==========               
HSA Agents               
==========               
*******                  
Agent 1                  
*******                  
  Name:                    AMD Ryzen 9 9950X3D 16-Core Processor
  Uuid:                    CPU-XX                             
  Marketing Name:          AMD Ryzen 9 9950X3D 16-Core Processor
  Device Type:             CPU                                
  BDFID:                   0                                  
*******                  
Agent 2                  
*******                  
  Name:                    gfx1201                            
  Uuid:                    GPU-0123456789abcdef               
  Marketing Name:          AMD Radeon AI PRO R9700            
  Device Type:             GPU                                
  Cache Info:              
    L1:                      32(0x20) KB                        
  BDFID:                   768                                
  Memory Properties:       
  Pool Info:               
    Pool 1                   
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED      
  ISA Info:                
    ISA 1                    
      Name:                    amdgcn-amd-amdhsa--gfx1201         
*******                  
Agent 3                  
*******                  
  Name:                    gfx942                             
  Marketing Name:          AMD Instinct MI300A                
  Device Type:             GPU                                
  BDFID:                   30720                              
  Memory Properties:       APU
*** Done ***             
`

func TestRocminfo(t *testing.T) {
	f := texttest.Parse("x", "$ rocminfo\n"+rocminfoText+"next\n")
	expect.Must(t, len(f.GPUs.Devices) == 2, "got %+v", f.GPUs.Devices)
	g := testGPU(t, f, "0000:03:00.0")
	expect.That(t, g.Name == "AMD Radeon AI PRO R9700" && g.Architecture == "gfx1201" && g.Vendor == "amd" && *g.Index == 0 && g.UUID != "" && g.Integrated == nil, "got %+v", g)
	g = testGPU(t, f, "0000:78:00.0")
	expect.That(t, g.Architecture == "gfx942" && g.Integrated != nil && *g.Integrated && *g.Index == 1, "got %+v", g)
}

func TestRocminfoFragments(t *testing.T) {
	for name, c := range map[string]struct {
		text          string
		architectures []string
	}{
		"names":     {"$ rocminfo | grep -E '^  Name: +gfx'\n  Name:                    gfx1201     \n  Name:                    gfx1201     \n  Name:                    gfx1036     \n", []string{"gfx1201", "gfx1201", "gfx1036"}},
		"with ISAs": {"$ rocminfo | grep gfx\n  Name:                    gfx1100                            \n      Name:                    amdgcn-amd-amdhsa--gfx1100         \n  Name:                    gfx1036                            \n", []string{"gfx1100", "gfx1036"}},
		"models":    {"$ rocminfo | grep Marketing\n  Marketing Name:          AMD EPYC 7763 64-Core Processor    \n  Marketing Name:          AMD Instinct MI210                 \n  Marketing Name:          AMD Instinct MI210                 \n", []string{"", ""}},
		"no prompt": {"Agent 2\n*******\n  Name:                    gfx90a\n  Marketing Name:          AMD Instinct MI250X\n", []string{"gfx90a"}},
	} {
		f := texttest.Parse(name, c.text)
		expect.NoDiff(t, c.architectures, expect.Map(f.GPUs.Devices, func(g facts.GPU) string { return g.Architecture }), "%s", name)
	}
}

func TestROCmVersionFile(t *testing.T) {
	for text, want := range map[string]string{
		"$ cat /opt/rocm/.info/version\n6.2.0-66\n":      "6.2.0-66",
		"$ cut -d- -f1 /opt/rocm/.info/version\n7.2.1\n": "7.2.1",
	} {
		f := texttest.Parse("x", text)
		expect.That(t, len(f.Software) == 1 && f.Software[0].Name == "rocm" && f.Software[0].Version == want, "%q: got %+v", text, f.Software)
	}
}

func TestTorchDevices(t *testing.T) {
	for text, want := range map[string]string{
		">>> import torch\n>>> torch.cuda.is_available()\nFalse\n":                       "torch-sees-no-gpu",
		">>> torch.cuda.is_available()\nTrue\n":                                          "torch-sees-gpu",
		"$ python -c \"import torch; print(torch.cuda.is_available())\"\nFalse\n":        "torch-sees-no-gpu",
		"user@node:~$ python3 -c 'import torch; print(torch.cuda.device_count())'\n4\n":  "torch-gpu-count",
		"In [2]: torch.cuda.device_count()\n0\n":                                         "torch-gpu-count",
		"if not torch.cuda.is_available():\n    raise RuntimeError('no GPU')\nFalse\n":   "",
		"$ python -c \"import torch; print(torch.__version__)\"\nFalse\n":                "",
		"device = 'cuda' if torch.cuda.is_available() else 'cpu'\nprint(device)\n":       "",
		"Is CUDA available: False\n":                                                     "torch-sees-no-gpu",
		"print(f'CUDA available: {torch.cuda.is_available()}')\nCUDA available: False\n": "torch-sees-no-gpu",
	} {
		expect.Equal(t, want, texttest.First("x", text).ID, "%q", text)
	}
}
